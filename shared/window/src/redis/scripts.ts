import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

/** The Lua functions. Each has a file of its name in `lua/`, whose header states KEYS, ARGV and what is returned. */
export const SCRIPT_NAMES = [
  "accept",
  "accept_messages",
  "add_feedback",
  "announce_gateway_key",
  "assert_routes",
  "begin_window",
  "bind_claim",
  "count_presence",
  "count_sessions",
  "decide_session",
  "disconnect",
  "flush_counters",
  "lease_connections",
  "lease_shares",
  "list_agents",
  "mark_congestion",
  "open_window",
  "prune_presence",
  "raise_window",
  "read_agents",
  "read_credentials",
  "read_gateway_keys",
  "read_journeys",
  "read_presence",
  "read_session",
  "read_target",
  "read_window",
  "record_promotions",
  "release",
  "renew_lease",
  "reserve_decision",
  "snapshot",
  "snapshot_control",
  "touch_agents",
  "use_limit",
] as const;

export type ScriptName = (typeof SCRIPT_NAMES)[number];

/** The text of a Lua file, its lines ended by LF. @param file from `lua/` on, without `.lua`. */
export function luaFile(file: string): string {
  return readFileSync(new URL(`../lua/${file}.lua`, import.meta.url), "utf8").replaceAll("\r\n", "\n");
}

/** The files whose functions a file calls, as its header names them: `Uses  lib/time, accept/results`. Pure. */
export function usesOf(lua: string): string[] {
  const [, list = ""] = /^-- Uses {2}((?:.*,\n-- {7})*.*)$/m.exec(lua) ?? [];
  return list.match(/[a-z_/]+/g) ?? [];
}

/**
 * The files that a script is joined of, each once and after those that it uses: the functions of one are locals of the
 * whole. Redis makes them anew at each call, 0.05 to 0.2 µs each, so a script has no more of them than it uses.
 */
export function filesOf(name: ScriptName): string[] {
  const files = new Set<string>();
  const add = (file: string) => {
    for (const used of usesOf(luaFile(file))) if (!files.has(used)) add(used);
    files.add(file);
  };
  add(name);
  return [...files];
}

/** Text and SHA-1 of each script. */
export const SCRIPTS = Object.fromEntries(
  SCRIPT_NAMES.map((name) => {
    const lua = filesOf(name).map(luaFile).join("\n");
    return [name, { lua, sha: hash("sha1", lua) }];
  }),
) as Readonly<Record<ScriptName, { readonly lua: string; readonly sha: string }>>;

/** A reply of a script: nested arrays of texts and integers. */
export type Reply = string | number | null | Reply[];

/** Runs a script in one round trip; in two when Redis has lost it. */
export async function runScript(
  client: Redis,
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<Reply> {
  const { sha, lua } = SCRIPTS[name];
  try {
    return (await client.evalsha(sha, keys.length, ...keys, ...args)) as Reply;
  } catch (err) {
    if (!(err instanceof Error) || !err.message.startsWith("NOSCRIPT")) throw err;
    return (await client.eval(lua, keys.length, ...keys, ...args)) as Reply;
  }
}

/** Loads all scripts, so that no call of a running service meets NOSCRIPT and is overtaken by the next one. */
export async function loadScripts(client: Redis): Promise<void> {
  await Promise.all(SCRIPT_NAMES.map((name) => client.script("LOAD", SCRIPTS[name].lua)));
}
