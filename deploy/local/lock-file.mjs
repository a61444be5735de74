import { lstatSync, readFileSync, readlinkSync, rmSync, utimes, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

const POLL_MS = 20;
const RENEW_MS = 10_000;
/** A lock from elsewhere that nobody renewed for so long has no living holder. */
const ABANDONED_MS = 60_000;

/** The boot of the machine, and the pid namespace: a pid from elsewhere names another process here, or none. */
const PLACE = [
  hostname(),
  told(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
  told(() => readlinkSync("/proc/self/ns/pid")),
].join(" ");
const OWN = `${process.pid} ${startOf(process.pid)} ${PLACE}`;

/**
 * Runs `work` while this process alone holds the lock, the file `path`, which names its holder. Another process takes over the lock of a
 * dead holder, or of one elsewhere that stood still for a minute. Runs on Node 20, before anything is installed.
 *
 * @template T
 * @param {string} path
 * @param {number} timeoutMs how long to wait for another holder before failing
 * @param {(check: () => void) => T | Promise<T>} work may call `check`, which throws if the lock was lost, before it writes
 * @returns {Promise<T>} rejects if the lock was lost by the end of the work
 */
export async function withLock(path, timeoutMs, work) {
  const deadline = Date.now() + timeoutMs;
  while (!create(path)) {
    if (removeIfAbandoned(path)) continue;
    if (Date.now() > deadline)
      throw new Error(
        `Another process holds ${path}. If that process died, try again in a minute. Delete the file only if no process uses it.`,
      );
    await delay(POLL_MS);
  }
  const renewing = setInterval(() => renew(path), RENEW_MS).unref();
  const check = () => {
    if (!isOwn(path))
      throw new Error(
        `This process no longer holds ${path}: it stood still, and another process took over. See what is changed before you try again.`,
      );
  };
  try {
    const result = await work(check);
    check();
    return result;
  } finally {
    clearInterval(renewing);
    if (isOwn(path)) rmSync(path, { force: true });
  }
}

/** @param {string} path */
function create(path) {
  try {
    writeFileSync(path, OWN, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    // On a full disk the file is there, without its text.
    if (error.syscall === "write") rmSync(path, { force: true });
    throw error;
  }
}

/** @param {string} path */
function renew(path) {
  if (!isOwn(path)) return;
  const now = new Date();
  utimes(path, now, now, () => {});
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
    rmSync(breaking, { force: true });
  }
}

/** A pid alone would be another process's some day. @param {string} path */
function isAbandoned(path) {
  const [, pid, start, place] = /^(\d+) (\d*) (.+)$/.exec(holderOf(path)) ?? [];
  if (place !== PLACE) return ageOf(path) > ABANDONED_MS;
  if (!isAlive(Number(pid))) return true;
  const found = startOf(Number(pid));
  return found !== "" && found !== start;
}

/** A holder that stood still may have lost its lock to another. @param {string} path */
function isOwn(path) {
  return holderOf(path) === OWN;
}

/** "" where the lock is gone, or its text not written yet. @param {string} path */
function holderOf(path) {
  return told(() => readFileSync(path, "utf8"));
}

/** NaN where the lock is gone. @param {string} path */
function ageOf(path) {
  return Date.now() - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.NaN);
}

/** When a process started, in ticks since the boot, which is the 22nd field. @param {number} pid */
function startOf(pid) {
  return told(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  });
}

/** "" where the system does not tell. @param {() => string} read */
function told(read) {
  try {
    return read();
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
