import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { filesOf, luaFile, SCRIPT_NAMES, SCRIPTS, type ScriptName, usesOf } from "../src/redis/scripts.ts";
import { Bench } from "./kit.ts";
import { localsOf, parseLibrary, withoutComments } from "./lua-file.ts";
import { type Globals, globalsOf } from "./lua-globals.ts";

const FILES = readdirSync(new URL("../src/lua/", import.meta.url), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith(".lua"))
  .map((file) => file.replace(/\.lua$/, ""));
const LIBRARIES = FILES.filter((file) => file.includes("/"));

/** What Redis gives to every script. */
const GIVEN = new Set(
  "redis KEYS ARGV string table math bit ipairs pairs unpack tonumber tostring type select next".split(" "),
);

const offeredBy = (file: string) => parseLibrary(luaFile(file)).functions.map(({ name }) => name);

const bench = new Bench();
const globals = new Map<string, Globals>();
/** What a file takes from others. */
const takenBy = (file: string) => [...(globals.get(file) as Globals).read].filter((name) => !GIVEN.has(name));

beforeAll(async () => {
  await bench.open();
  for (const file of FILES) globals.set(file, await globalsOf(bench.client, luaFile(file)));
});
afterAll(async () => {
  await bench.clear();
  await bench.redis.stop();
});

test("Every Lua file is a script or used by one, and none is longer than a file may be", () => {
  expect([...new Set(SCRIPT_NAMES.flatMap(filesOf))].sort()).toEqual(FILES.sort());
  expect(FILES.filter((file) => !LIBRARIES.includes(file))).toEqual([...SCRIPT_NAMES]);
  for (const file of FILES) expect(luaFile(file).trimEnd().split("\n").length).toBeLessThanOrEqual(150);
});

test.each(SCRIPT_NAMES)(
  "The script %s is joined of the files that it uses, each after those it uses itself",
  (name) => {
    const files = filesOf(name);
    expect(files.at(-1)).toBe(name);
    expect(SCRIPTS[name].lua).toBe(files.map(luaFile).join("\n"));
    for (const [index, file] of files.entries()) {
      for (const used of usesOf(luaFile(file))) expect(files.slice(0, index)).toContain(used);
    }
  },
);

test.each(SCRIPT_NAMES)("No two files of the script %s declare one name", (name: ScriptName) => {
  const names = filesOf(name).flatMap((file) => [...new Set(localsOf(luaFile(file)))]);
  expect(names.filter((one, index) => names.indexOf(one) !== index)).toEqual([]);
});

test("The time of Redis is asked for in one place", () => {
  expect(FILES.filter((file) => /['"]TIME['"]/i.test(withoutComments(luaFile(file))))).toEqual(["lib/time"]);
});

describe.each(FILES)("The Lua file %s, compiled alone", (file) => {
  test("writes no global", () => {
    expect([...(globals.get(file) as Globals).written]).toEqual([]);
  });

  test("takes from others what the files offer that its header says it uses, from each of them something", () => {
    const offers = usesOf(luaFile(file)).map(offeredBy);
    const taken = takenBy(file);
    expect(taken.filter((name) => offers.filter((names) => names.includes(name)).length !== 1)).toEqual([]);
    for (const names of offers) expect(names.some((name) => taken.includes(name))).toBe(true);
  });
});

describe.each(LIBRARIES)("The Lua file %s, of which scripts use functions", (file) => {
  const { purpose, functions, rest } = parseLibrary(luaFile(file));

  test("says what it is for, holds functions and does nothing by itself", () => {
    expect(purpose).toMatch(/^[A-Z].*\.$/s);
    expect(functions.length).toBeGreaterThan(0);
    expect(rest).toBe("");
  });

  test("says of each function that returns something what that is", () => {
    const silent = functions.filter(
      ({ doc, text }) => /\breturn (?!end\b)\S/.test(text) && !/\b[Rr]eturns\b/.test(doc),
    );
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  test("offers nothing that nobody calls", () => {
    const taken = new Set(FILES.flatMap(takenBy));
    const own = withoutComments(luaFile(file));
    const calledHere = (name: string) => own.split(new RegExp(`\\b${name}\\b`)).length > 2;
    expect(functions.map(({ name }) => name).filter((name) => !taken.has(name) && !calledHere(name))).toEqual([]);
  });
});

test("A file's globals are found wherever they stand, and what is no Lua is refused", async () => {
  const lua =
    "local a = b\nlocal function f(x) return function() c = x + a + redis.d end end\nreturn f(e[1.5] or true)";
  const found = await globalsOf(bench.client, lua);
  expect([...found.read].sort()).toEqual(["b", "e", "redis"]);
  expect([...found.written]).toEqual(["c"]);
  await expect(globalsOf(bench.client, "local function f( return end")).rejects.toThrow();
});
