import { readFile } from "node:fs/promises";
import { controlKeys, partitionKeys } from "window/redis/keys.ts";
import { WindowKeys } from "window/redis/window-keys.ts";

/** deploy/redis/users.acl, read as its own comments tell. */

export interface AclUser {
  readonly name: string;
  /** What the user may do; the call of scripts and other rules in parentheses stand in `selectors`. */
  readonly rules: AclRules;
  readonly selectors: readonly AclRules[];
}

export interface AclRules {
  readonly commands: readonly string[];
  readonly keys: readonly { readonly reads: boolean; readonly writes: boolean; readonly pattern: string }[];
  readonly channels: readonly string[];
}

export async function readUsersAcl(): Promise<AclUser[]> {
  const text = await readFile(new URL("../../deploy/redis/users.acl", import.meta.url), "utf8");
  const users = text
    .replace(/^#.*/gm, "")
    .split(/^user /m)
    .slice(1);
  return users.map((user) => {
    const [, name = "", rest = ""] = /^(\S+)(.*)$/s.exec(user) ?? [];
    const selectors = [...rest.matchAll(/\(([^)]*)\)/g)].map(([, inner = ""]) => rulesOf(inner));
    return { name, rules: rulesOf(rest.replace(/\([^)]*\)/g, "")), selectors };
  });
}

function rulesOf(text: string): AclRules {
  const words = text.split(/\s+/);
  return {
    commands: words.filter((word) => word.startsWith("+")).map((word) => word.slice(1)),
    channels: words.filter((word) => word.startsWith("&")).map((word) => word.slice(1)),
    keys: words.flatMap((word) => {
      const [, permission, pattern] = /^(%R|%W|)~(.*)$/.exec(word) ?? [];
      if (pattern === undefined) return [];
      return { reads: permission !== "%W", writes: permission !== "%R", pattern };
    }),
  };
}

/** What rules say of one key. */
export function accessTo(rules: AclRules, key: string): { readonly reads: boolean; readonly writes: boolean } {
  const matching = rules.keys.filter(({ pattern }) => matches(pattern, key));
  return { reads: matching.some(({ reads }) => reads), writes: matching.some(({ writes }) => writes) };
}

/** True when a pattern with stars fits the name. */
export function matches(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[^\w-]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(name);
}

const SOME_PARTITION = 12;
/** What the name of a key ends with, where not every user has all of its kind. */
const REST: Readonly<Record<string, string>> = { limit: "address:target_reads:7" };

const SOME_KEYS = new WindowKeys(1, Array(SOME_PARTITION + 1).fill(2));
/** A key of each name that ends with its window. */
export const WINDOW_KEYS: readonly string[] = [SOME_KEYS.whole, SOME_KEYS.partition(SOME_PARTITION)]
  .flatMap((keys) => Object.values(keys))
  .map((key) => (typeof key === "function" ? key("7") : key));

/** One key of each kind that keys.ts makes, by kind: `relay:{0qx}:seen:7` is `seen`. */
export const KEY_OF_KIND: ReadonlyMap<string, string> = new Map(
  [
    ...Object.entries(partitionKeys)
      .filter(([name]) => !name.startsWith("podChannel"))
      .map(([name, make]) => (make as (p: number, rest: string) => string)(SOME_PARTITION, REST[name] ?? "7")),
    ...Object.values(controlKeys),
    ...WINDOW_KEYS,
  ].map((key) => [kindOf(key), key]),
);

function kindOf(key: string): string {
  return key.replace(/^relay:\{\w+\}:/, "").split(":")[0] as string;
}
