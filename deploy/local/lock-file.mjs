import { readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;

/**
 * Runs `work` while this process alone holds the lock `path`: a symbolic link to nowhere, which names its holder from the moment it is
 * there. A lock whose holder died is taken over, whichever step it died at. Runs on Node 20, before anything is installed.
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
    if (removeIfAbandoned(path)) continue;
    if (Date.now() > deadline)
      throw new Error(`${path} is held by another process; delete it if that process does not run.`);
    await delay(POLL_MS);
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
    symlinkSync(`${process.pid} ${startOf(process.pid)}`, path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Two processes may find the same abandoned lock. Only the one that holds the lock `.break` removes it, and only after it
 * checked again: otherwise the slower one would remove the lock that the faster one has just made. Whoever died with `.break`
 * has abandoned that in turn.
 *
 * @param {string} path
 */
function removeIfAbandoned(path) {
  if (!isAbandoned(path)) return false;
  const breaking = `${path}.break`;
  if (!create(breaking)) return removeIfAbandoned(breaking);
  try {
    if (isAbandoned(path)) rmSync(path, { force: true });
    return true;
  } finally {
    rmSync(breaking);
  }
}

/**
 * A pid alone would be another process's some day, in a container that of the next run.
 *
 * @param {string} path
 */
function isAbandoned(path) {
  const holder = holderOf(path);
  if (holder === undefined) return false;
  const [pid, start] = holder.split(" ");
  if (!isAlive(Number(pid))) return true;
  const found = startOf(Number(pid));
  return start !== "" && found !== "" && found !== start;
}

/** Undefined when the lock is gone. */
function holderOf(path) {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/**
 * When a process started, in ticks since the boot, which is the 22nd field; "" where the system does not tell.
 *
 * @param {number} pid
 */
function startOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return "";
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
