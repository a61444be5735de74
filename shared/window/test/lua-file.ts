/** What the header of a Lua file says about one of its two parameters. */
export interface Section {
  /** The numbered entries: names[0] is that of KEYS[1] or ARGV[1]. */
  readonly names: readonly string[];
  /** More may follow than are numbered. */
  readonly open: boolean;
  /** How many entries there are at least. */
  readonly least: number;
}

/** The file of a script. */
export interface ScriptFile {
  readonly purpose: string;
  readonly keys: Section;
  readonly args: Section;
  readonly returns: string;
  /** What follows the header, without comments. */
  readonly body: string;
}

/** A function that a library or a part of a script offers. */
export interface LuaFunction {
  readonly name: string;
  /** The comment before it. */
  readonly doc: string;
  readonly text: string;
}

/** A library, or a part of a script: functions, and nothing that is done by itself. */
export interface LibraryFile {
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
