// Prepares what an npm script needs: the packages of what runs and the pinned Node; for `check` and the tests those of
// development, too; a Redis server for `start` and the tests, for `test` a Python that can run `examples/python` and the tests of
// `connector-python`, and Prometheus, and for `test:browser` a Chromium. For `test:containers` it checks that there is a Docker engine and
// kubectl. Prints what it does, and nothing when nothing is missing. Runs on Node 20 without packages.
//
//   node deploy/local/prepare.mjs [start | check | test | test:browser | test:containers]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browserProgram } from "./browser-program.mjs";
import { dockerEngine } from "./docker-engine.mjs";
import { kubectlProgram } from "./kubectl-program.mjs";
import { withLock } from "./lock-file.mjs";
import { installPackages, packagesReady } from "./packages.mjs";
import { onPath } from "./programs.mjs";
import { prometheusPrograms } from "./prometheus-program.mjs";
import { PYTHON_PACKAGES, pythonProgram } from "./python-program.mjs";
import { redisProgram } from "./redis-program.mjs";
import { runProgram } from "./run-program.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Long enough for packages over a slow network. */
const LOCK_TIMEOUT_MS = 15 * 60_000;

const task = process.argv[2];
const packages = { development: task === "check" || task?.startsWith("test") === true };
/** What the task needs on the machine: a check that throws when it is missing, and the Debian packages that provide it. */
const needs = [
  ...(needsRedis() ? [{ check: redisProgram, debian: ["redis-server"] }] : []),
  ...(task === "test" ? [{ check: pythonProgram, debian: PYTHON_PACKAGES }] : []),
  ...(task === "test" ? [{ check: prometheusPrograms, debian: ["prometheus"] }] : []),
  ...(task === "test:browser" ? [{ check: browserProgram, debian: ["chromium"] }] : []),
  ...(task === "test:containers" ? [{ check: dockerEngine, debian: [] }] : []),
  ...(task === "test:containers" ? [{ check: kubectlProgram, debian: [] }] : []),
];

try {
  if (!packagesReady(ROOT, packages) || missing().length > 0) await install();
  for (const { check } of needs) check();
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}

function needsRedis() {
  return task === "test" || task === "test:browser" || (task === "start" && !process.env.REDIS_URL);
}

async function install() {
  mkdirSync(join(ROOT, ".local"), { recursive: true, mode: 0o700 });
  await withLock(join(ROOT, ".local/prepare.lock"), LOCK_TIMEOUT_MS, async () => {
    const ends = await Promise.allSettled([addPackages(), addPrograms()]);
    for (const { reason } of ends) if (reason !== undefined) throw reason;
  });
}

async function addPackages() {
  if (!packagesReady(ROOT, packages)) await installPackages(ROOT, packages, say);
}

/** Beside the packages: most of either is waiting for others' servers. */
async function addPrograms() {
  const names = missing();
  if (names.length === 0) return;
  say(`installing ${names.join(" and ")} (apt-get update, apt-get install)`);
  await aptGet(names, "update", "-qq");
  await aptGet(names, "install", "-qq", "-y", "--no-install-recommends", ...names);
}

/** The Debian packages to install. Only root on a machine with apt can install them; others are told what to run. */
function missing() {
  if (process.getuid?.() !== 0 || onPath("apt-get") === undefined) return [];
  return needs.filter(({ check }) => fails(check)).flatMap(({ debian }) => debian);
}

function fails(check) {
  try {
    check();
    return false;
  } catch {
    return true;
  }
}

async function aptGet(names, ...args) {
  try {
    await runProgram("apt-get", args, { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } });
  } catch (error) {
    throw new Error(`${error.message}; run: apt-get update && apt-get install -y ${names.join(" ")}`);
  }
}

function say(line) {
  process.stderr.write(`prepare: ${line}\n`);
}
