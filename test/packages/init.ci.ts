import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { sharedByAll } from "../../connector/test/fixture.ts";
import { next, Stage } from "../../connector/test/kit.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { connectorIn, madePackages } from "../support/packages.ts";
import { serveWhole } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";
import { Machine } from "./npm.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const OLD_NODE = pathToFileURL(join(REPOSITORY, "test/packages/old-node.mjs"));
const WITHIN_MS = 20_000;
const PYTHON_SOURCES = join(REPOSITORY, "connector-python/src");

const stage = sharedByAll(new Stage("alice", "carol"));
const machine = use(new Machine());
let packages: string;
beforeAll(async () => {
  packages = await madePackages();
}, 60_000);
const pod = given(() => serveWhole(stage.relay, { RELAY_PACKAGES_DIR: packages }));

const agents: ChildProcess[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    const ended = agent.exitCode === null && once(agent, "close");
    agent.kill("SIGKILL");
    await ended;
  }
  await stage.clear();
});

/** What `relay init` of the relay's own package writes into a folder; the operator then adds its key. */
async function project(language: string): Promise<string> {
  const folder = await machine.folder(language);
  const { file } = await connectorIn(packages);
  const line = `npx --yes --package=${pod.url}/packages/${file} relay init ${folder} --language ${language} --url ${pod.url}`;
  expect(await machine.shell(line, dirname(folder))).toMatchObject({ code: 0, stderr: "" });
  const env = { RELAY_KEYS_FILE: stage.relay.keysFile };
  const add = [join(REPOSITORY, "deploy/keys/run.ts"), "add", join(folder, "record.json"), "--url", pod.url];
  await promisify(execFile)(process.execPath, add, { env });
  return folder;
}

/** Asks an agent that was just started, and negotiates with it; a message without the member that it expects comes first. */
async function converse(agent: string): Promise<void> {
  const carol = await stage.online("carol", pod.url);
  await carol.send(agent, {}, { waitOnline: 20_000 });
  const alice = await stage.online("alice", pod.url);
  const { payload } = await alice.ask(agent, { message: "Hi." });
  expect(payload).toEqual({ message: "Hello, agent://alice. You said: Hi." });
  await alice.requestSession(agent, { purpose: "to talk" });
  // Nobody whom the agent trusts vouches for alice.
  expect((await next(alice)).type).toBe("session.reject");
}

/** Starts the agent; resolves with how it ends at Ctrl-C, once it has been conversed with, and what it said of errors. */
async function run(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv, name: string) {
  const agent = spawn(program, args, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  agents.push(agent);
  let errors = "";
  agent.stderr?.on("data", (chunk) => {
    errors += chunk;
  });
  await converse(name);
  const ended = once(agent, "close");
  agent.kill("SIGINT");
  return { code: (await ended)[0] as number | null, errors };
}

/** Starts the agent; resolves with how it ends at SIGTERM, once its connection broke and is back, and what it said on its way. */
async function outliveALoss(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
  const proxy = await stage.proxy(pod.url);
  const agent = spawn(program, args, {
    cwd,
    env: { ...env, RELAY_URL: proxy.url },
    stdio: ["ignore", "pipe", "ignore"],
  });
  agents.push(agent);
  const lines: string[] = [];
  createInterface(agent.stdout).on("line", (line) => lines.push(line));
  const isOnline = (times: number) => () => lines.filter((line) => line.endsWith(" is online")).length === times;
  await until("it says that it is online", isOnline(1), WITHIN_MS);
  proxy.cut();
  await until("it says that it is back", isOnline(2), WITHIN_MS);
  const ended = once(agent, "close");
  agent.kill("SIGTERM");
  return { code: (await ended)[0] as number | null, lines };
}

/** What it says of its connection: a loss, and its return; and that it closed it. */
const STATES = ["connecting", "online", "reconnecting", "online", "closed"];

describe("What relay init writes, in an empty folder, with no registry in reach,", () => {
  test("in TypeScript compiles strictly, passes its test on a relay of its own, and answers", async () => {
    const cwd = await project("typescript");
    await withTheCompilerOfTheRepository(cwd);
    expect(await machine.shell("npm install", cwd)).toMatchObject({ code: 0 });
    await link(cwd, "typescript", "@types/node");
    for (const command of ["npm start", "npm test"]) {
      const { code, stderr } = await machine.shell(`NODE_OPTIONS=--import=${OLD_NODE} ${command}`, cwd);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^relay: .*Node 22 or later/)]);
    }
    const tested = await machine.shell("npm test", cwd);
    expect({ ...tested, passed: /^.* pass [1-9]/m.test(tested.stdout) }).toMatchObject({ code: 0, passed: true });

    const broken = (await readFile(join(cwd, "agent.ts"), "utf8")).replace("Hello", "Good day");
    await writeFile(join(cwd, "agent.ts"), broken);
    expect((await machine.shell("npm test", cwd)).code).toBe(1);
    await writeFile(join(cwd, "agent.ts"), broken.replace("Good day", "Hello"));
    await machine.shell("npm run prestart", cwd);
    expect(await run(process.execPath, ["dist/main.js"], cwd, {}, "agent://typescript")).toEqual({
      code: 0,
      errors: "",
    });
    expect(await outliveALoss(process.execPath, ["dist/main.js"], cwd, {})).toEqual({
      code: 0,
      lines: STATES.map((state) => `agent://typescript is ${state}`),
    });
  }, 180_000);

  test("in Python has types that hold strictly, passes its test on the relay, and answers", async () => {
    const cwd = await project("python");
    const env = { PYTHONPATH: PYTHON_SOURCES, MYPYPATH: PYTHON_SOURCES, PYTHONDONTWRITEBYTECODE: "1" };
    const python = (...args: string[]) => promisify(execFile)(pythonProgram(), args, { cwd, env });
    expect((await python("-m", "mypy", "--strict", ".")).stdout).toMatch(/no issues found in 3 /);
    expect((await python("-X", "dev", "-m", "unittest")).stderr).toMatch(/^Ran 3 tests[\s\S]*^OK$/m);
    const readme = await readFile(join(cwd, "README.md"), "utf8");
    const sources = `env PYTHONPATH=${PYTHON_SOURCES} PYTHONDONTWRITEBYTECODE=1 ${pythonProgram()}`;
    const alone = /^npx .* with-relay .*$/m.exec(readme)?.[0].replace(".venv/bin/python", sources) as string;
    const tested = await machine.shell(alone, cwd);
    expect(tested).toMatchObject({ code: 0, stderr: expect.stringMatching(/^Ran 3 tests[\s\S]*^OK$/m) });

    const careless = (await readFile(join(cwd, "agent.py"), "utf8")).replace('.get("message")', '["message"]');
    await writeFile(join(cwd, "agent.py"), careless);
    const ran = await run(pythonProgram(), ["main.py"], cwd, env, "agent://python");
    expect(ran).toEqual({ code: 0, errors: expect.stringContaining("KeyError: 'message'") });
    expect(await outliveALoss(pythonProgram(), ["main.py"], cwd, env)).toEqual({
      code: 0,
      lines: STATES.map((state) => `agent://python is ${state}`),
    });
  }, 180_000);
});

/** They come from a registry. */
async function withTheCompilerOfTheRepository(cwd: string): Promise<void> {
  const file = join(cwd, "package.json");
  const { devDependencies, ...manifest } = JSON.parse(await readFile(file, "utf8"));
  const { typescript: _, "@types/node": __, ...ours } = devDependencies;
  await writeFile(file, JSON.stringify({ ...manifest, devDependencies: ours }));
}

async function link(cwd: string, ...names: readonly string[]): Promise<void> {
  await mkdir(join(cwd, "node_modules/@types"));
  for (const name of names) await symlink(join(REPOSITORY, "node_modules", name), join(cwd, "node_modules", name));
  await symlink("../typescript/bin/tsc", join(cwd, "node_modules/.bin/tsc"));
}
