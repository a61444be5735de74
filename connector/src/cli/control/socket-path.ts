import { createHash } from "node:crypto";
import { lstat, mkdir, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "../io.ts";
import { CONTROL_VERSION } from "./channel.ts";

/**
 * Where the control socket of a running `relay listen` is: an agent has one connection, so other commands send through
 * the process that holds it. The folder is accessible to its owner only, as those of tmux and ssh-agent are.
 */

/** Of the 108 bytes that a socket's path may have, the name takes 24, a hyphen and the process id. */
const NAME_CHARACTERS = 24;
/** With the process id. */
export const SOCKET_NAME = new RegExp(`^[0-9a-f]{${NAME_CHARACTERS}}-(\\d+)$`);

/** The folder, created when it is missing. Undefined when it is not private, and on systems without Unix sockets. */
export async function socketFolder(env: Io["env"]): Promise<string | undefined> {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const folder = join(env.XDG_RUNTIME_DIR || tmpdir(), `agent-relay-${uid}`);
  await mkdir(folder, { mode: 0o700 }).catch(() => {});
  const found = await lstat(folder).catch(() => undefined);
  const isPrivate = found?.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0;
  return isPrivate ? folder : undefined;
}

/** The common prefix of the sockets of all listeners of an agent at a relay. */
function prefixOf(agent: string, websocketUrl: string): string {
  return createHash("sha256")
    .update(`${CONTROL_VERSION} ${agent} ${websocketUrl}`)
    .digest("hex")
    .slice(0, NAME_CHARACTERS);
}

/** Each process has its own path: a listener that was superseded must not remove the socket of its successor. */
export function socketPath(folder: string, agent: string, websocketUrl: string): string {
  return join(folder, `${prefixOf(agent, websocketUrl)}-${process.pid}`);
}

/** The sockets of all listeners of an agent at a relay, stale ones included. */
export async function socketPaths(folder: string, agent: string, websocketUrl: string): Promise<string[]> {
  const prefix = prefixOf(agent, websocketUrl);
  const files = await readdir(folder).catch(() => []);
  return files.filter((file) => file.startsWith(`${prefix}-`)).map((file) => join(folder, file));
}
