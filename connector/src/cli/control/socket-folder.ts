import { lstat, mkdir } from "node:fs/promises";
import os from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { shellWord } from "../output.ts";
import type { ControlPlace } from "./place.ts";
import { MAX_NAME_BYTES } from "./socket-path.ts";

/**
 * The folder of the control sockets of one user. Only its owner can enter it. No environment variable moves it: an application
 * of the desktop starts `relay mcp` with another environment than a shell has. Source: docs/security.md#the-control-socket.
 */

type Asked = Pick<ControlPlace, "warn">;

/** Of a socket's path: macOS takes 103, Linux 107. */
const MAX_PATH_BYTES = 100;
/** What follows where sockets cannot be had. */
export const UNSHARED = "The processes of the agent on this machine share no connection.";

/** Makes it when it is missing. Undefined when it is not private, which is warned of, and on systems without Unix sockets. */
export async function madeSocketFolder({ warn }: Asked): Promise<string | undefined> {
  const folder = await folderWhere(isMade);
  if (folder === undefined) return undefined;
  const failed = await whyNotMade(folder);
  if (failed === undefined) return await privateOne(folder, warn);
  const text = `The folder of the control sockets, ${folder}, cannot be made (${failed}). ${UNSHARED}`;
  warn(text, "Give this user a home folder that it can write, and start them again.");
  return undefined;
}

/** The same, but undefined when it is missing, too. */
export async function findSocketFolder({ warn }: Asked): Promise<string | undefined> {
  const folder = await folderWhere(isThere);
  return folder && (await privateOne(folder, warn));
}

/** @param isUsable whether that of the home folder is; else it is the other one. */
async function folderWhere(isUsable: (folder: string) => Promise<boolean>): Promise<string | undefined> {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const ofHome = folderOfHome();
  return ofHome !== undefined && (await isUsable(ofHome)) ? ofHome : `/tmp/agent-relay-${uid}`;
}

/** Of the user's entry in passwd, which may be missing. Undefined when the path of a socket there could be too long. */
function folderOfHome(): string | undefined {
  try {
    const folder = join(os.userInfo().homedir, ".agent-relay", "run");
    const bytes = Buffer.byteLength(folder) + 1 + MAX_NAME_BYTES;
    return isAbsolute(folder) && bytes <= MAX_PATH_BYTES ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** A home folder that is missing is not made. */
async function isMade(folder: string): Promise<boolean> {
  for (const path of [dirname(folder), folder]) if ((await whyNotMade(path)) !== undefined) return false;
  return true;
}

async function isThere(folder: string): Promise<boolean> {
  return (await statOf(folder)) !== undefined;
}

/** Undefined when it is there, whatever it is; else the code of the error. */
async function whyNotMade(folder: string): Promise<string | undefined> {
  const failed = await mkdir(folder, { mode: 0o700 }).then(() => "EEXIST", codeOf);
  return failed === "EEXIST" ? undefined : failed;
}

/** In any other one somebody else could remove a socket, or learn who connects. */
async function privateOne(folder: string, warn: Asked["warn"]): Promise<string | undefined> {
  const found = await statOf(folder);
  if (found === undefined) return undefined;
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    const text = `The folder of the control sockets, ${folder}, is not yours, or no folder. ${UNSHARED}`;
    warn(text, "Have it removed, and start them again.");
    return undefined;
  }
  if ((found.mode & 0o077) === 0) return folder;
  const text = `Other users can enter the folder of the control sockets, ${folder}. ${UNSHARED}`;
  warn(text, `Run: chmod 700 ${shellWord(folder)}, and start them again.`);
  return undefined;
}

async function statOf(path: string) {
  return await lstat(path).catch(() => undefined);
}

function codeOf({ code }: NodeJS.ErrnoException): string {
  return code ?? "";
}
