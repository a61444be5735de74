import { spawnSync } from "node:child_process";
import { onPath } from "./programs.mjs";

/** Deliveries use sharded pub/sub, which Redis has since 7.0. */
const MIN_MAJOR = 7;
const REDIS_PROGRAMS = ["redis-server", "valkey-server"];

/**
 * Path of the first Redis or Valkey server on the PATH that is new enough.
 *
 * @param {string} [path] the PATH to search
 * @returns {string}
 * @throws {Error} one line: what is missing, and what to run
 */
export function redisProgram(path = process.env.PATH ?? "") {
  const found = REDIS_PROGRAMS.map((name) => onPath(name, path)).filter((program) => program !== undefined);
  if (found.length === 0)
    throw new Error(`Neither redis-server nor valkey-server is on the PATH. ${howToInstall(path)}`);

  const newEnough = found.find((program) => majorVersion(versionBanner(program)) >= MIN_MAJOR);
  if (newEnough === undefined) {
    throw new Error(
      `${found[0]} is older than Redis ${MIN_MAJOR}.0, which sharded pub/sub requires. Install a later version.`,
    );
  }
  return newEnough;
}

/**
 * Major version in what `redis-server --version` prints ("Redis server v=7.0.15 sha=…"); 0 when there is none in it.
 *
 * @param {string} banner
 */
export function majorVersion(banner) {
  return Number(/\bv=(\d+)\./.exec(banner)?.[1] ?? 0);
}

function versionBanner(program) {
  return spawnSync(program, ["--version"], { encoding: "utf8" }).stdout ?? "";
}

/** What to run on this machine. */
function howToInstall(path) {
  if (onPath("apt-get", path)) return "Run: sudo apt-get install -y --no-install-recommends redis-server";
  if (onPath("brew", path)) return "Run: brew install redis";
  return `Install Redis ${MIN_MAJOR}.0 or later.`;
}
