import type { Redis } from "ioredis";

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
