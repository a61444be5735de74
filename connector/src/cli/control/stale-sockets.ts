import { once } from "node:events";
import { lstat, readdir, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { SOCKET_NAME } from "./socket-path.ts";

/** Far more than killed processes leave: whatever else bears their names must not delay a start. */
const MAX_LOOKED_AT = 512;

/**
 * Removes the sockets that killed processes left in the folder. One after the other: whoever fills the folder would else have this
 * process open a file for each name.
 */
export async function removeStaleSockets(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  const sockets = names.filter((name) => SOCKET_NAME.test(name)).slice(0, MAX_LOOKED_AT);
  for (const name of sockets) await removeIfStale(folder, name);
}

/**
 * One of a process that is about to listen refuses connections, too, and one of a process that is busy may; that process is
 * there, though. One of another process namespace accepts them.
 */
async function removeIfStale(folder: string, name: string): Promise<void> {
  const [, pid] = SOCKET_NAME.exec(name) ?? [];
  if (pid === undefined || isRunning(Number(pid))) return;
  const path = join(folder, name);
  const found = await lstat(path).catch(() => undefined);
  // Anything else was not left by a process of ours, and must not keep one from starting. Somebody else may have removed it.
  if (found?.isSocket() && (await refuses(path))) await unlink(path).catch(() => {});
}

function isRunning(pid: number): boolean {
  // This process listens nowhere under its own name before it has looked: the name is of one that had its id before.
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

async function refuses(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    socket.destroy();
  }
}
