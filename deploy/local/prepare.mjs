// Makes sure that what an npm script needs is there: the packages, the pinned Node, and for `start` and `test` a Redis
// server. Says what it does, and nothing when nothing is missing. Runs on Node 20, before anything is installed.
//
//   node deploy/local/prepare.mjs [start | test]

import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lock-file.mjs";
import { installPackages, packagesReady } from "./packages.mjs";
import { onPath } from "./programs.mjs";
import { redisProgram } from "./redis-program.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Packages over a slow line. */
const PATIENCE_MS = 15 * 60_000;

const task = process.argv[2];
const needsRedis = task === "test" || (task === "start" && !process.env.REDIS_URL);

try {
  if (!packagesReady(ROOT) || mustInstallRedis()) await install();
  if (needsRedis) redisProgram();
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}

async function install() {
  mkdirSync(join(ROOT, ".local"), { recursive: true, mode: 0o700 });
  await withLock(join(ROOT, ".local/prepare.lock"), PATIENCE_MS, () => {
    if (!packagesReady(ROOT)) installPackages(ROOT, say);
    if (mustInstallRedis()) installRedis();
  });
}

/** Only root on a machine with apt can; anyone else is told what to run. */
function mustInstallRedis() {
  const missing = needsRedis && !onPath("redis-server") && !onPath("valkey-server");
  return missing && process.getuid?.() === 0 && onPath("apt-get") !== undefined;
}

function installRedis() {
  say("installing redis-server (apt-get update, apt-get install)");
  aptGet("update", "-qq");
  aptGet("install", "-qq", "-y", "--no-install-recommends", "redis-server");
}

function aptGet(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const { status } = spawnSync("apt-get", args, { env, stdio: ["ignore", 2, 2] });
  if (status !== 0)
    throw new Error(`apt-get ${args[0]} failed; run: apt-get update && apt-get install -y redis-server`);
}

function say(line) {
  process.stderr.write(`prepare: ${line}\n`);
}
