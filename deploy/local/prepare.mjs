// Installs what a command needs and lacks: packages of npm, which bring a Node on Linux, and programs of Debian. Prints
// each step, and nothing if nothing is missing. It runs on Node 20 without packages.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browserProgram } from "./browser-program.mjs";
import { dockerEngine } from "./docker-engine.mjs";
import { kubectlProgram } from "./kubectl-program.mjs";
import { withLock } from "./lock-file.mjs";
import { nodeProgram } from "./node-program.mjs";
import { installPackages, packagesReady } from "./packages.mjs";
import { onPath } from "./programs.mjs";
import { prometheusPrograms } from "./prometheus-program.mjs";
import { PYTHON_PACKAGES, pythonProgram } from "./python-program.mjs";
import { redisProgram } from "./redis-program.mjs";
import { runProgram } from "./run-program.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Long enough for packages over a slow network. */
const LOCK_TIMEOUT_MS = 15 * 60_000;

/** Each program: a check that throws if it is missing, and the Debian packages that provide it. */
const PROGRAMS = {
  redis: { check: redisProgram, debian: ["redis-server"] },
  python: { check: pythonProgram, debian: PYTHON_PACKAGES },
  prometheus: { check: prometheusPrograms, debian: ["prometheus"] },
  chromium: { check: browserProgram, debian: ["chromium"] },
  docker: { check: dockerEngine, debian: [] },
  kubectl: { check: kubectlProgram, debian: [] },
};

/**
 * @param {readonly string[]} needs names of PROGRAMS, and `development` for the packages that only development needs.
 * @returns {Promise<string>} path of the Node to run on.
 * @throws {Error} that says what is missing and what to run.
 */
export async function prepare(needs) {
  const packages = { development: needs.includes("development") };
  const programs = needs.filter((need) => need !== "development").map((need) => PROGRAMS[need]);
  if (!packagesReady(ROOT, packages) || missing(programs).length > 0) await install(packages, programs);
  for (const { check } of programs) check();
  return nodeProgram(ROOT);
}

/** npm and apt-get work at once: both mostly wait for servers. */
async function install(packages, programs) {
  mkdirSync(join(ROOT, ".local"), { recursive: true, mode: 0o700 });
  await withLock(join(ROOT, ".local/prepare.lock"), LOCK_TIMEOUT_MS, async () => {
    const ends = await Promise.allSettled([addPackages(packages), addPrograms(missing(programs))]);
    for (const { reason } of ends) if (reason !== undefined) throw reason;
  });
}

async function addPackages(packages) {
  if (!packagesReady(ROOT, packages)) await installPackages(ROOT, packages, say);
}

async function addPrograms(names) {
  if (names.length === 0) return;
  say(`installing ${names.join(" and ")} (apt-get update, apt-get install)`);
  await aptGet(names, "update", "-qq");
  await aptGet(names, "install", "-qq", "-y", "--no-install-recommends", ...names);
}

/** The Debian packages to install. Only root can install them, on a machine with apt. Others are told what to run. */
function missing(programs) {
  if (process.getuid?.() !== 0 || onPath("apt-get") === undefined) return [];
  return programs.filter(({ check }) => fails(check)).flatMap(({ debian }) => debian);
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
