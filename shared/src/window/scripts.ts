import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

/** The Lua functions, one file each, or one folder; every header states KEYS, ARGV and what is returned. */
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

/** The parts of a script that is too long for one file, in the order in which they are joined. */
const PARTS: Partial<Record<ScriptName, readonly string[]>> = {
  accept: ["accept/batch", "accept/presence", "accept/publications", "accept/settlement"],
};

/** The files of a script, from `lua/` on. */
export function filesOf(name: ScriptName): string[] {
  return (PARTS[name] ?? [name]).map((part) => `${part}.lua`);
}

/** Text and SHA-1 of each script. */
export const SCRIPTS = Object.fromEntries(
  SCRIPT_NAMES.map((name) => {
    const lua = filesOf(name)
      .map((file) => readFileSync(new URL(`lua/${file}`, import.meta.url), "utf8"))
      .join("\n");
    return [name, { lua, sha: hash("sha1", lua) }];
  }),
) as Readonly<Record<ScriptName, { readonly lua: string; readonly sha: string }>>;

/** Loads all scripts, so that no call of a running service meets NOSCRIPT and is overtaken by the next one. */
export async function loadScripts(client: Redis): Promise<void> {
  await Promise.all(SCRIPT_NAMES.map((name) => client.script("LOAD", SCRIPTS[name].lua)));
}
