import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;

/**
 * Runs `work` while this process alone holds the lock file `path`, which contains the holder's pid. A lock whose holder
 * died is taken over. Runs on Node 20, before anything is installed.
 *
 * @template T
 * @param {string} path
 * @param {number} timeoutMs how long to wait for another holder before failing
 * @param {() => T | Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(path, timeoutMs, work) {
  const deadline = Date.now() + timeoutMs;
  while (!create(path)) {
    if (Date.now() > deadline)
      throw new Error(`${path} is held by another process; delete it if that process does not run.`);
    if (!removeIfAbandoned(path)) await delay(POLL_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

/** @param {string} path */
function create(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Two processes may find the same abandoned lock. Only the one that holds the `.break` file removes it, and only after it
 * checked again: otherwise the slower one would remove the lock that the faster one has just made.
 *
 * @param {string} path
 */
function removeIfAbandoned(path) {
  if (!isAbandoned(path) || !create(`${path}.break`)) return false;
  try {
    if (isAbandoned(path)) rmSync(path, { force: true });
    return true;
  } finally {
    rmSync(`${path}.break`);
  }
}

/** @param {string} path */
function isAbandoned(path) {
  const pid = holderOf(path);
  return pid > 0 && !isAlive(pid);
}

/** The holder's pid; 0 when the lock is gone or its holder has not written it yet. */
function holderOf(path) {
  try {
    return Number(readFileSync(path, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return 0;
    throw error;
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
