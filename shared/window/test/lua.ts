import type { Redis } from "ioredis";

/** What the header of a Lua file says about one of its two parameters. */
interface Section {
  /** The numbered entries: names[0] is that of KEYS[1] or ARGV[1]. */
  readonly names: readonly string[];
  /** More may follow than are numbered. */
  readonly open: boolean;
  /** How many entries there are at least. */
  readonly least: number;
}

/** The file of a script. */
interface ScriptFile {
  readonly purpose: string;
  readonly keys: Section;
  readonly args: Section;
  readonly returns: string;
  /** What follows the header, without comments. */
  readonly body: string;
}

/** A function that a library or a part of a script offers. */
interface LuaFunction {
  readonly name: string;
  /** The comment before it. */
  readonly doc: string;
  readonly text: string;
}

/** A library, or a part of a script: functions, and nothing that is done by itself. */
interface LibraryFile {
  readonly purpose: string;
  readonly functions: readonly LuaFunction[];
  /** What stands outside of functions and comments. */
  readonly rest: string;
}

const HEADER = /^((?:--.*\n)+)/;
const USES = /^Uses {2}(?:.*,\n {6})*.*\n?/m;
const SECTIONS =
  /^(?<purpose>[\s\S]+?)\n\nKEYS {2}(?<keys>[\s\S]+?)\nARGV {2}(?<args>[\s\S]+?)\nReturns (?<returns>[\s\S]+)$/;
const FUNCTION = /(?<doc>(?:^--.*\n)*)^(?<text>local function (?<name>\w+)\([\s\S]*?^end$)/gm;

/** @throws {Error} when the header does not have its four parts: purpose, KEYS, ARGV, Returns. */
export function parseScript(lua: string): ScriptFile {
  const { groups } = SECTIONS.exec(headerOf(lua)) ?? {};
  if (groups === undefined) throw new Error("no header with purpose, KEYS, ARGV and Returns");
  const { purpose, keys, args, returns } = groups as Record<"purpose" | "keys" | "args" | "returns", string>;
  return { purpose, keys: sectionOf(keys), args: sectionOf(args), returns, body: withoutComments(lua) };
}

export function parseLibrary(lua: string): LibraryFile {
  const body = lua.replace(HEADER, "");
  const functions = [...body.matchAll(FUNCTION)].map(({ groups }) => groups as unknown as LuaFunction);
  return { purpose: headerOf(lua), functions, rest: withoutComments(body.replaceAll(FUNCTION, "")).trim() };
}

/** Names at the top of a script's file that the joined script declares: functions and variables of all of it. */
export function localsOf(lua: string): string[] {
  const declared = [...lua.matchAll(/^local (?:function (\w+)|([\w, ]+?)(?: =|$))/gm)];
  return declared.flatMap(([, name, names]) => name ?? (names as string).split(", "));
}

export function withoutComments(lua: string): string {
  return lua.replaceAll(/--.*$/gm, "");
}

/** Its lines, without those that say what the file uses. */
function headerOf(lua: string): string {
  const header = (HEADER.exec(lua)?.[1] ?? "").replaceAll(/^-- ?/gm, "");
  return header.replace(USES, "").trim();
}

/** Entries are numbered from 1 on; other numbers in the text are not the next one. */
function sectionOf(text: string): Section {
  const names: string[] = [];
  for (const [, number, name] of text.matchAll(/(?<=^|[\s(])(\d+) ([^,;.]*)/g)) {
    if (Number(number) === names.length + 1) names.push((name as string).replaceAll(/\s+/g, " "));
  }
  const optionalFrom = /(\d+) only with/.exec(text)?.[1];
  return {
    names,
    open: /\bthen\b|^pairs\b|…/.test(text),
    least: optionalFrom === undefined ? names.length : Number(optionalFrom) - 1,
  };
}

const SIGNATURE = "\x1bLua\x51\x00";
const [GET_GLOBAL, SET_GLOBAL] = [5, 7];

/** Names of globals, each once. */
export interface Globals {
  readonly read: ReadonlySet<string>;
  readonly written: ReadonlySet<string>;
}

/**
 * The globals of a Lua file that is compiled alone, as `luac -l` lists them: a name that is no local of the file is one.
 * Redis has the compiler; the code is the one of Lua 5.1, lundump.c.
 * @throws {Error} when the file is not valid Lua.
 */
export async function globalsOf(client: Redis, lua: string): Promise<Globals> {
  const dump = "return string.dump(assert(loadstring(ARGV[1])))";
  const code = (await client.callBuffer("EVAL", dump, "0", lua)) as Buffer;
  const globals = { read: new Set<string>(), written: new Set<string>() };
  new Chunk(code).walk(globals);
  return globals;
}

/** Reads compiled code from its beginning to its end. */
class Chunk {
  readonly #code: Buffer;
  #at = 12;

  constructor(code: Buffer) {
    const [little, int, size, instruction, number] = code.subarray(6, 11);
    if (code.toString("latin1", 0, 6) !== SIGNATURE) throw new Error("no code of Lua 5.1");
    if (`${little} ${int} ${size} ${instruction} ${number}` !== "1 4 8 4 8") throw new Error("code of another machine");
    this.#code = code;
  }

  /** One function, with those in it: source, lines, sizes, instructions, constants, functions, what debuggers need. */
  walk(globals: { readonly read: Set<string>; readonly written: Set<string> }): void {
    this.#text();
    this.#at += 4 + 4 + 4;
    const instructions = this.#list(() => this.#int());
    const constants = this.#list(() => this.#constant());
    for (const instruction of instructions) {
      const operation = instruction & 0x3f;
      const name = constants[instruction >>> 14] as string;
      if (operation === GET_GLOBAL) globals.read.add(name);
      if (operation === SET_GLOBAL) globals.written.add(name);
    }
    this.#list(() => this.walk(globals));
    this.#list(() => this.#int());
    this.#list(() => [this.#text(), this.#int(), this.#int()]);
    this.#list(() => this.#text());
  }

  #list<T>(read: () => T): T[] {
    return Array.from({ length: this.#int() }, read);
  }

  #int(): number {
    this.#at += 4;
    return this.#code.readUInt32LE(this.#at - 4);
  }

  /** A size with the closing zero, and so many bytes. */
  #text(): string {
    const size = Number(this.#code.readBigUInt64LE(this.#at));
    const from = this.#at + 8;
    this.#at = from + size;
    return this.#code.toString("utf8", from, Math.max(from, this.#at - 1));
  }

  #constant(): string | undefined {
    const type = this.#code[this.#at++];
    if (type === 4) return this.#text();
    this.#at += type === 3 ? 8 : type === 1 ? 1 : 0;
    return undefined;
  }
}
