// Runs a command of package.json: prepares what the command needs, then runs its programs on the machine's Node,
// or on the pinned one if the machine's is too old.
// npm runs it in the repository's folder. It runs on Node 20 without packages.
//
//   node deploy/local/run.mjs <command> [arguments]

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { JEST } from "./jest.mjs";
import { prepare } from "./prepare.mjs";

/** In the table below: the Node that `prepare` chooses. */
const NODE = "<node>";
/** Each of these tests has two minutes. */
const LONG = "--testTimeout=120000";
const SIGNALS = ["SIGINT", "SIGHUP", "SIGTERM"];
const TESTS = ["development", "redis", "python", "prometheus"];

/** What each command needs, and the programs that it runs one after the other. Arguments go to the last one. */
const COMMANDS = {
  start: command(process.env.REDIS_URL ? [] : ["redis"], program("deploy/local/main.ts")),
  "start:cluster": command(["redis"], program("deploy/local/main.ts --cluster")),

  check: command(
    ["development"],
    `${NODE} node_modules/.bin/tsc -p .`,
    "node_modules/.bin/biome check",
    tests("prose"),
  ),
  test: command(TESTS, tests("test")),
  "test:ci": command(TESTS, tests("ci")),
  "test:browser": command(["development", "redis", "chromium"], tests("browser", "--runInBand")),
  "test:cluster": command(TESTS, tests("cluster")),
  "test:containers": command(["development", "docker", "kubectl"], tests("containers", "--runInBand")),
  "test:containers:clients": command(["development", "python", "docker"], tests("containers-clients", "--runInBand")),
  "test:faults": command(TESTS, tests("faults", "--runInBand", LONG)),
  "test:faults:cluster": command(TESTS, tests("cluster-faults", "--runInBand", LONG)),
  "test:random": command(TESTS, program("test/lab/random/main.ts")),
  "test:sabotage": command(TESTS, program("test/lab/sabotage/main.ts")),
  "test:upgrade": command(TESTS, program("test/lab/upgrade/main.ts")),
  soak: command(TESTS, program("test/lab/soak/main.ts")),
  "soak:connectors": command(TESTS, program("test/lab/soak/connectors/main.ts")),
  bench: command(TESTS, program("test/lab/bench/main.ts")),
  "bench:guard": command(TESTS, program("test/lab/bench/guard/main.ts")),

  admin: command([], program("deploy/admin/run.ts")),
  keys: command([], program("deploy/keys/run.ts")),
  listen: command([], program("examples/listen.mjs")),
  monitoring: command([], program("deploy/monitoring/main.ts")),
  packages: command([], program("deploy/packages/main.ts")),
  partitions: command([], program("deploy/redis/partitions.ts")),
  promises: command(["development"], program("test/docs/promises.ts")),
  prose: command(["development"], program("test/docs/prose/main.ts")),
  release: command(["development"], program("deploy/release/main.ts")),
  "window:reset": command([], program("deploy/redis/window-reset.ts")),
};

/** What `npm run test:full` runs: what neither `npm test` nor `.ci/run` runs whole. */
const FULL = [
  "test:cluster",
  "test:containers:clients",
  "test:faults",
  "test:faults:cluster",
  "test:upgrade",
  "soak",
  "soak:connectors",
];

const [name, ...args] = process.argv.slice(2);
process.exitCode = await runAll(name === "test:full" ? FULL : [name]);

/** @returns the exit code of the first command that fails, else 0. */
async function runAll(names) {
  for (const each of names) {
    const code = await run(each);
    if (code !== 0) return code;
  }
  return 0;
}

async function run(command) {
  if (!Object.hasOwn(COMMANDS, command)) {
    process.stderr.write(`No such command. There are: ${Object.keys(COMMANDS).join(", ")}\n`);
    return 2;
  }
  const { needs, programs } = COMMANDS[command];
  let node;
  try {
    node = await prepare(needs);
  } catch (error) {
    process.stderr.write(`prepare: ${error.message}\n`);
    return 1;
  }
  for (const words of programs) {
    const [file, ...rest] = words === programs.at(-1) ? [...words, ...args] : words;
    const code = await endOf(file === NODE ? node : file, rest);
    if (code !== 0) return code;
  }
  return 0;
}

/**
 * Hands a signal on to the program. A terminal sends Ctrl-C to both: a second signal would end the program at once.
 * @returns its exit code, or 128 and the number of the signal that ended it.
 */
async function endOf(file, words) {
  const child = spawn(file, words, { stdio: "inherit" });
  const handle = (signal) => {
    if (signal === "SIGTERM" || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, handle);
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject).once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
    });
  } finally {
    for (const signal of SIGNALS) process.off(signal, handle);
  }
}

function command(needs, ...programs) {
  return { needs, programs: programs.map((words) => words.split(" ")) };
}

function program(words) {
  return `${NODE} ${words}`;
}

/** Jest takes every word behind --selectProjects for a project: --config ends their list. */
function tests(project, ...options) {
  return [NODE, ...JEST, "--selectProjects", project, "--config", "jest.config.mjs", ...options].join(" ");
}
