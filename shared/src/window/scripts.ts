import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

/** The Lua functions, one file each; every header states KEYS, ARGV and what is returned. */
export const SCRIPT_NAMES = [
  "accept",
  "add_feedback",
  "announce_gateway_key",
  "count_presence",
  "decide_session",
  "flush_counters",
  "open_window",
  "prune_presence",
  "read_gateway_keys",
  "read_presence",
  "read_session",
  "read_window",
  "release",
  "reset_window",
  "snapshot",
] as const;

export type ScriptName = (typeof SCRIPT_NAMES)[number];

/** Text and SHA-1 of each script. */
export const SCRIPTS = Object.fromEntries(
  SCRIPT_NAMES.map((name) => {
    const lua = readFileSync(new URL(`lua/${name}.lua`, import.meta.url), "utf8");
    return [name, { lua, sha: hash("sha1", lua) }];
  }),
) as Readonly<Record<ScriptName, { readonly lua: string; readonly sha: string }>>;

/** Loads all scripts, so that no call of a running service meets NOSCRIPT and is overtaken by the next one. */
export async function loadScripts(client: Redis): Promise<void> {
  await Promise.all(SCRIPT_NAMES.map((name) => client.script("LOAD", SCRIPTS[name].lua)));
}
