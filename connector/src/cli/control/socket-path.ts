import { createHash, randomInt } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { CONTROL_VERSION } from "./channel.ts";

/**
 * The names of control sockets: an agent has one connection, so other commands send through the process that holds it. Whoever
 * looks for it tries every socket of the agent's prefix.
 */

/** The process id is between the two, with hyphens. */
const PREFIX_CHARACTERS = 24;
const SUFFIX_CHARACTERS = 6;
/** Linux counts process ids to 4194304, macOS to 99999. */
const PID_CHARACTERS = 7;
export const MAX_NAME_BYTES: number = PREFIX_CHARACTERS + PID_CHARACTERS + SUFFIX_CHARACTERS + 2;
const SUFFIXES = 36 ** SUFFIX_CHARACTERS;
/** With the process id. */
export const SOCKET_NAME = new RegExp(`^[0-9a-f]{${PREFIX_CHARACTERS}}-(\\d+)-[0-9a-z]{${SUFFIX_CHARACTERS}}$`);

/** The common prefix of the sockets of all listeners of an agent at a relay. */
function prefixOf(agent: string, websocketUrl: string): string {
  return createHash("sha256")
    .update(`${CONTROL_VERSION} ${agent} ${websocketUrl}`)
    .digest("hex")
    .slice(0, PREFIX_CHARACTERS);
}

/**
 * Each is new: a listener that was superseded must not remove the socket of its successor, and nobody can take a name before a
 * process does that has the agent's connection.
 */
export function newSocketPath(folder: string, agent: string, websocketUrl: string): string {
  const suffix = randomInt(SUFFIXES).toString(36).padStart(SUFFIX_CHARACTERS, "0");
  return join(folder, `${prefixOf(agent, websocketUrl)}-${process.pid}-${suffix}`);
}

/** The sockets of all listeners of an agent at a relay, stale ones included. A link to one elsewhere is none of them. */
export async function socketPaths(folder: string, agent: string, websocketUrl: string): Promise<string[]> {
  const prefix = prefixOf(agent, websocketUrl);
  const files = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return files
    .filter((file) => file.name.startsWith(`${prefix}-`) && file.isSocket())
    .map(({ name }) => join(folder, name));
}
