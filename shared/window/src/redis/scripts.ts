import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

/**
 * Names of the Lua scripts in each file of `lua/`. A script begins with the line `--- name` and a header that states
 * KEYS, ARGV and the reply.
 */
const SCRIPTS_OF_FILE = {
  accept: ["accept"],
  accept_messages: ["accept_messages"],
  counters: ["flush_counters", "read_journeys", "add_feedback", "snapshot", "snapshot_control"],
  public_keys: ["announce_gateway_key", "read_gateway_keys", "read_credentials"],
  limits: ["use_limit", "lease_shares"],
  pods: ["renew_lease", "lease_connections"],
  presence: [
    "read_presence",
    "read_agents",
    "read_target",
    "list_agents",
    "count_presence",
    "prune_presence",
    "release",
    "disconnect",
    "mark_congestion",
  ],
  restore_routes: ["restore_routes"],
  sessions: ["reserve_decision", "decide_session", "bind_claim", "count_sessions", "read_session"],
  window: ["begin_window", "raise_window", "open_window", "read_window", "record_promotions"],
  write_heartbeats: ["write_heartbeats"],
} as const;

type ScriptFile = keyof typeof SCRIPTS_OF_FILE;
export type ScriptName = (typeof SCRIPTS_OF_FILE)[ScriptFile][number];

export const SCRIPT_NAMES = Object.values(SCRIPTS_OF_FILE).flat() as readonly ScriptName[];

/** Text of a Lua file with LF line ends. @param file path in `lua/` without `.lua`. */
export function luaFile(file: string): string {
  return readFileSync(new URL(`../lua/${file}.lua`, import.meta.url), "utf8").replaceAll("\r\n", "\n");
}

/** The scripts of a file by name, in order. Pure. */
export function scriptsIn(lua: string): [name: string, text: string][] {
  return lua
    .split(/^--- /m)
    .slice(1)
    .map((section) => {
      const end = section.indexOf("\n");
      return [section.slice(0, end), section.slice(end + 1)];
    });
}

/** Text of each script, without the files that it uses. */
export const SCRIPT_TEXTS = Object.fromEntries(
  Object.keys(SCRIPTS_OF_FILE).flatMap((file) => scriptsIn(luaFile(file))),
) as Readonly<Record<ScriptName, string>>;

/** Files whose functions a text calls, from its header: `Uses  lib/time, accept/batch`. Pure. */
export function usesOf(lua: string): string[] {
  const [, list = ""] = /^-- Uses {2}((?:.*,\n-- {7})*.*)$/m.exec(lua) ?? [];
  return list.match(/[a-z_/]+/g) ?? [];
}

/** Files that a text uses, also through other files. Each file comes once, after the files that it uses. */
export function filesUsedBy(lua: string): string[] {
  const files = new Set<string>();
  const add = (text: string) => {
    for (const file of usesOf(text)) {
      if (files.has(file)) continue;
      add(luaFile(file));
      files.add(file);
    }
  };
  add(lua);
  return [...files];
}

/**
 * Text and SHA-1 of each script. Functions of used files are locals of the script. Redis creates them at each call, in
 * 0.05 to 0.2 µs each. So a script of the hot path includes few functions that it does not call.
 */
export const SCRIPTS = Object.fromEntries(
  SCRIPT_NAMES.map((name) => {
    const own = SCRIPT_TEXTS[name];
    const lua = [...filesUsedBy(own).map(luaFile), own].join("\n");
    return [name, { lua, sha: hash("sha1", lua) }];
  }),
) as Readonly<Record<ScriptName, { readonly lua: string; readonly sha: string }>>;

/** Reply of a script: nested arrays of texts and integers. */
export type Reply = string | number | null | Reply[];

/** Runs a script in one round trip, or in two if Redis has lost the script. */
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

/** Loads all scripts. So no call meets NOSCRIPT, which would let the next call overtake it. */
export async function loadScripts(client: Redis): Promise<void> {
  await Promise.all(SCRIPT_NAMES.map((name) => client.script("LOAD", SCRIPTS[name].lua)));
}
