import { createHash } from "node:crypto";
import { lstat, mkdir, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "./command.ts";

/**
 * Where a running `relay listen` takes orders from other commands of the same user: an agent has one connection, so
 * whatever it says must go through that. A folder that only its owner may enter, as tmux and ssh-agent have theirs.
 */

/** A socket's path may have 108 bytes; the name takes 24 and the process id. */
const NAME_CHARACTERS = 24;

/** The folder, made when there is none. Undefined where it would not be private, and on systems without such sockets. */
export async function socketFolder(env: Io["env"]): Promise<string | undefined> {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const folder = join(env.XDG_RUNTIME_DIR || tmpdir(), `agent-relay-${uid}`);
  await mkdir(folder, { mode: 0o700 }).catch(() => {});
  const found = await lstat(folder).catch(() => undefined);
  const isPrivate = found?.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0;
  return isPrivate ? folder : undefined;
}

/** What the sockets of all listeners of an agent at a relay begin with. */
function nameOf(agent: string, websocketUrl: string): string {
  return createHash("sha256").update(`${agent} ${websocketUrl}`).digest("hex").slice(0, NAME_CHARACTERS);
}

/** A path of this process's own: a listener that was taken over must not remove the socket of the one that took over. */
export function socketPath(folder: string, agent: string, websocketUrl: string): string {
  return join(folder, `${nameOf(agent, websocketUrl)}-${process.pid}`);
}

/** The sockets of listeners of an agent at a relay, those of dead ones included. */
export async function socketPaths(folder: string, agent: string, websocketUrl: string): Promise<string[]> {
  const name = nameOf(agent, websocketUrl);
  return (await readdir(folder)).filter((file) => file.startsWith(`${name}-`)).map((file) => join(folder, file));
}
