/** What the header of a Lua file says about one of its two parameters. */
export interface Section {
  /** The numbered entries: names[0] is that of KEYS[1] or ARGV[1]. */
  readonly names: readonly string[];
  /** More may follow than are numbered. */
  readonly open: boolean;
  /** How many entries there are at least. */
  readonly least: number;
}

export interface LuaFile {
  readonly purpose: string;
  readonly keys: Section;
  readonly args: Section;
  readonly returns: string;
  /** What follows the header, without comments. */
  readonly body: string;
}

const HEADER = /^((?:--.*\n)+)/;
const SECTIONS =
  /^(?<purpose>[\s\S]+?)\nKEYS {2}(?<keys>[\s\S]+?)\nARGV {2}(?<args>[\s\S]+?)\nReturns (?<returns>[\s\S]+)$/;

/** @throws {Error} when the header does not have its four parts: purpose, KEYS, ARGV, Returns. */
export function parseLua(text: string): LuaFile {
  const header = (HEADER.exec(text)?.[1] ?? "").replaceAll(/^-- ?/gm, "").trim();
  const parts = SECTIONS.exec(header)?.groups as Record<"purpose" | "keys" | "args" | "returns", string> | undefined;
  if (parts === undefined) throw new Error("no header with purpose, KEYS, ARGV and Returns");
  const body = text.replace(HEADER, "").replaceAll(/--.*$/gm, "");
  const { purpose, keys, args, returns } = parts;
  return { purpose, keys: sectionOf(keys), args: sectionOf(args), returns, body };
}

/** Entries are numbered from 1 on; other numbers in the text are not the next one. */
function sectionOf(text: string): Section {
  const names: string[] = [];
  for (const [, number, name] of text.matchAll(/(?<=^|[\s(])(\d+) ([^,;.]*)/g)) {
    if (Number(number) === names.length + 1) names.push((name as string).replaceAll(/\s+/g, " "));
  }
  const optionalFrom = /(\d+) to \d+\s+only with/.exec(text)?.[1];
  return {
    names,
    open: /\bthen\b|^pairs\b|…/.test(text),
    least: optionalFrom === undefined ? names.length : Number(optionalFrom) - 1,
  };
}
