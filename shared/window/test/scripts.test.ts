import { afterAll, describe, expect, jest, test } from "@jest/globals";
import { RedisLink } from "../src/redis/redis-link.ts";
import { luaFile, SCRIPT_NAMES, SCRIPTS } from "../src/redis/scripts.ts";
import { runEveryScript } from "./every-script.ts";
import { Bench } from "./kit.ts";
import { parseScript, withoutComments } from "./lua-file.ts";

/** The indexes that a body spells out: `KEYS[1]` gives 1. */
function indexes(body: string, table: "KEYS" | "ARGV"): number[] {
  const found = [...body.matchAll(new RegExp(`\\b${table}\\[(\\d+)\\]`, "g"))].map(([, index]) => Number(index));
  return [...new Set(found)].sort((a, b) => a - b);
}

const oneTo = (n: number) => Array.from({ length: n }, (_, index) => index + 1);

describe.each(SCRIPT_NAMES)("the script %s", (name) => {
  const file = parseScript(luaFile(name));
  const { keys, args } = file;
  const body = withoutComments(SCRIPTS[name].lua);

  test("uses the keys and arguments that its header numbers, all of them and no others", () => {
    expect(indexes(body, "KEYS")).toEqual(oneTo(keys.names.length));
    expect(indexes(body, "ARGV")).toEqual(oneTo(args.names.length));
    expect(/\bARGV\b/.test(body)).toBe(args.names.length > 0 || args.open);
  });

  test("names its keys and arguments as locals before it does anything", () => {
    const rest = file.body.trim().replace(/^(?:local [\w, ]+ = [^\n]*\b(?:KEYS|ARGV)\[\d+\][^\n]*\n)+/, "");
    expect([...indexes(rest, "KEYS"), ...indexes(rest, "ARGV")]).toEqual([]);
  });

  test("spells no key, and makes none but the channel of a pod", () => {
    expect(body).not.toMatch(/relay/);
    expect(body.replaceAll("'agent://'", "")).not.toMatch(/(['"])[^'"\n]*:[^'"\n]*\1/);
  });

  test("asks for nothing that grows with the number of keys", () => {
    const found = [...body.matchAll(/call\('(KEYS|SCAN|RANDOMKEY|DBSIZE|FLUSH\w+)'/g)].map(([, command]) => command);
    expect(found).toEqual([]);
  });
});

describe("the callers", () => {
  const bench = new Bench();
  afterAll(async () => {
    await bench.clear();
    await bench.redis.stop();
  });

  test("give each script the keys and arguments that its header tells, in their order", async () => {
    await bench.open();
    const calls = jest.spyOn(RedisLink.prototype, "run");
    await runEveryScript(bench, 2);

    const seen = new Set<string>();
    for (const [name, keys, args = []] of calls.mock.calls) {
      seen.add(name);
      const header = parseScript(luaFile(name));
      for (const [given, told] of [
        [keys, header.keys],
        [args, header.args],
      ] as const) {
        expect(given.length).toBeGreaterThanOrEqual(told.least);
        if (!told.open) expect([told.least, told.names.length]).toContain(given.length);
      }
      for (const [index, told] of header.keys.names.entries()) {
        const key = keys[index];
        if (key !== undefined) expect(told).toContain(key.split(":")[2]?.replaceAll("-", " "));
      }
    }
    expect([...seen].sort()).toEqual([...SCRIPT_NAMES]);
  });
});
