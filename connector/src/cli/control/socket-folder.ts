import { lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "../io.ts";
import { shellWord } from "../output.ts";
import type { ControlPlace } from "./place.ts";

/** The folder of the control sockets of one user, accessible to its owner only, as those of tmux and ssh-agent are. */

type Asked = Pick<ControlPlace, "env" | "warn">;

/** Makes it when it is missing. Undefined when it is not private, which is warned of, and on systems without Unix sockets. */
export async function madeSocketFolder({ env, warn }: Asked): Promise<string | undefined> {
  const folder = folderOf(env);
  if (folder === undefined) return undefined;
  const failed = await mkdir(folder, { mode: 0o700 }).then(() => "EEXIST", codeOf);
  if (failed === "EEXIST") return await privateOne(folder, warn);
  warn(`The folder of the control sockets, ${folder}, cannot be made (${failed}). ${UNSHARED}`, ANOTHER);
  return undefined;
}

/** The same, but undefined when it is missing, too. */
export async function findSocketFolder({ env, warn }: Asked): Promise<string | undefined> {
  const folder = folderOf(env);
  return folder && (await privateOne(folder, warn));
}

/** What follows where sockets cannot be had, and what helps. */
export const UNSHARED = "The processes of the agent on this machine share no connection.";
export const ANOTHER = "Set XDG_RUNTIME_DIR, for all of them, to a folder that is yours alone and whose path is short.";

function folderOf(env: Io["env"]): string | undefined {
  const uid = process.getuid?.();
  return uid === undefined ? undefined : join(env.XDG_RUNTIME_DIR || tmpdir(), `agent-relay-${uid}`);
}

/** In any other one somebody else could remove a socket, or learn who connects. */
async function privateOne(folder: string, warn: Asked["warn"]): Promise<string | undefined> {
  const found = await lstat(folder).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    warn(`The folder of the control sockets, ${folder}, is not yours, or no folder. ${UNSHARED}`, ANOTHER);
    return undefined;
  }
  if ((found.mode & 0o077) === 0) return folder;
  const text = `Other users can enter the folder of the control sockets, ${folder}. ${UNSHARED}`;
  warn(text, `Run: chmod 700 ${shellWord(folder)}, and start them again.`);
  return undefined;
}

function codeOf({ code }: NodeJS.ErrnoException): string {
  return code ?? "";
}
