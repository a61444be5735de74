import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { fc } from "./fast-check.ts";

/** Names that V8 takes for each other once it has met some of them. */
const NAMES = [
  "\\",
  "\n",
  '"',
  "\\n",
  "\\u",
  "AA",
  "a",
  "a\\",
  "a\n",
  "\u0000",
  "é",
  "\ud800",
  "😂",
  "__proto__",
  "",
  "1",
];

const name = fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: "binary", maxLength: 4 }));
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.jsonValue({ maxDepth: 0, stringUnit: "binary" }),
    tie("items"),
    tie("members"),
  ),
  items: fc.array(tie("value"), { maxLength: 4 }),
  members: fc.array(fc.tuple(name, tie("value")), { maxLength: 4 }).map(membersOf),
}));

/** An object of members of any name; of two of one name the last counts. */
function membersOf(members: [string, unknown][]): object {
  return Object.fromEntries(members);
}

/** One of the spellings of a string: each character as it is, where JSON allows that, or as one of its escapes. */
function spelledString(text: string, choose: (max: number) => number): string {
  const units = Array.from({ length: text.length }, (_, index) => {
    const plain = JSON.stringify(text.charAt(index)).slice(1, -1);
    const hex = `\\u${text.charCodeAt(index).toString(16).padStart(4, "0")}`;
    return [plain, plain, hex, hex.toUpperCase().replace("U", "u")][choose(3)];
  });
  return `"${units.join("")}"`;
}

/** One of the spellings of a value. */
function spelled(value: unknown, choose: (max: number) => number): string {
  const space = () => ["", "", " ", "\t\n\r "][choose(3)];
  if (typeof value === "string") return `${space()}${spelledString(value, choose)}${space()}`;
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "number")
    return [String(value), value.toExponential(), value.toExponential().toUpperCase()][choose(2)] as string;
  if (typeof value !== "object" || value === null) return `${space()}${value}${space()}`;
  if (Array.isArray(value)) return `[${space()}${value.map((item) => spelled(item, choose))}]${space()}`;
  const members = Object.entries(value).map(
    ([key, item]) => `${space()}${spelledString(key, choose)}${space()}:${spelled(item, choose)}`,
  );
  return `{${space()}${members}${space()}}${space()}`;
}

const spelling = fc.tuple(anyValue, fc.infiniteStream(fc.nat({ max: 3 }))).map(([value, choices]) => ({
  value,
  text: spelled(value, (max) => (choices.next().value as number) % (max + 1)),
}));

/** JSON.parse, of which only whether it takes the text counts here: names do not matter for that. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a parser takes the text; what it refuses with is a SyntaxError. */
function takes(parseJson: (text: string) => unknown, text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return false;
  }
}

/**
 * What is promised of a parser that stands in for JSON.parse, whose fault docs/security.md#member-names tells. What it reads
 * is held to the value that the text was written from: JSON.parse is no reference.
 */
export function describeJsonParser(parseJson: (text: string) => unknown): void {
  describe("Parsing JSON", () => {
    /** What JSON.parse has met, the text that it then reads wrong, and what the text says. */
    test.each([
      ['{"a":1,"\\\\":2}', '{"a":1,"\\n":2}', { a: 1, "\n": 2 }],
      ['{"b":1,"\\\\":2}', '{"b":1,"\\"" \t:2}', { b: 1, '"': 2 }],
      ['{"c":1,"\\\\":2}', '{"c":1,"\\u00e9":2}', { c: 1, é: 2 }],
      ['{"d":1,"\\\\u":2}', '{"d":1,"\\u0041A":2}', { d: 1, AA: 2 }],
      ['{"e":1,"x\\\\":2}', '[1,{"e":1,"x\\n":":\\\\"}]', [1, { e: 1, "x\n": ":\\" }]],
    ])("after %s reads %s, where JSON.parse errs", (met, text, value) => {
      JSON.parse(met);
      expect(JSON.parse(text)).not.toEqual(value);
      expect(parseJson(text)).toEqual(value);
    });

    test.each(['{"v":"\\n:"}', '{"v":"\\"","w":["\\\\"]}', '{"v":"\\\\","w":1}'])(
      "reads escapes in values alone, as in %s, as JSON.parse does",
      (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text));
      },
    );

    test("reads any value, however it is written, as that value", () => {
      fc.assert(
        fc.property(spelling, ({ value, text }) => isDeepStrictEqual(parseJson(text), value)),
        { numRuns: 1000 },
      );
    });

    test("takes and refuses the texts that JSON.parse does", () => {
      const escaped = (text: string) => `{"\\u0061":${text}}`;
      const pieces = fc.constantFrom(
        ...'{}[]:,"\\u-+.eE01a \t\n\ufeff',
        "true",
        "null",
        '"\\u',
        '\\"',
        "1e5",
        '"a":',
        '"\\n":',
        "\u0000",
        "\u00a0",
      );
      const damaged = fc.tuple(spelling, fc.nat(), fc.nat({ max: 2 }), pieces).map(([{ text }, at, cut, piece]) => {
        const index = at % (text.length + 1);
        return text.slice(0, index) + piece + text.slice(index + cut);
      });
      const texts = fc.oneof(
        damaged,
        fc.array(pieces, { maxLength: 8 }).map((all) => all.join("")),
      );
      fc.assert(
        fc.property(texts, (text) => {
          for (const each of [text, escaped(text)]) expect(takes(parseJson, each)).toBe(isJson(each));
        }),
        { numRuns: 3000 },
      );
    });

    test.each(["01", "1.", ".5", "+1", "1e", "-", "tru", "1 2", "[1,]", '{"a"}', '"\t"', '"\\x"', "[1", "'a'", ""])(
      "refuses %j beside a name with an escape",
      (text) => {
        expect(() => parseJson(`{"\\n":${text}}`)).toThrow(SyntaxError);
      },
    );

    test.each([
      ["-0", -0],
      ["1E+2", 100],
      ["1e400", Number.POSITIVE_INFINITY],
      ["0.1e-7", 1e-8],
      ["12345678901234567890", 12345678901234567000],
    ])("reads the number %s as JSON.parse does", (text, number) => {
      expect(parseJson(`{"\\n":${text}}`)).toEqual({ "\n": number });
    });

    test("has of two members of one name the last, in the place of the first, whichever way they are written", () => {
      expect(Object.entries(parseJson('{"a":1,"b":2,"\\u0061":3}') as object)).toEqual([
        ["a", 3],
        ["b", 2],
      ]);
    });

    test("has __proto__ for a member like any other, which changes no object", () => {
      const value = parseJson('{"\\u005f_proto__":{"admin":true}}') as object;
      expect(Object.keys(value)).toEqual(["__proto__"]);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(value).not.toHaveProperty("admin");
    });

    test("takes any depth, and refuses any depth that is not closed, without an overflow", () => {
      const deep = `{"\\n":${"[".repeat(200_000)}`;
      expect(() => parseJson(deep)).toThrow(SyntaxError);
      expect(parseJson(`${deep}${"]".repeat(200_000)}}`)).toHaveProperty(["\n"]);
    });
  });
}

/** What both parsers of texts promise in which each member must stand once. */
export function describeUniqueJsonParser(parse: (text: string) => unknown): void {
  test.each([
    ['{"a":1,"a":1}', '{"a":1}'],
    ['{"a":[{"b":1,"c":2,"b":1}]}', '[{"a":{"a":1}},{"a":2}]'],
    ['{"a":1,"\\u0061":1}', '{"a":1,"b":"\\u0061"}'],
    ['{ "a": 1, "a": 1 }', '{ "a": 1, "b": [{ "a": 1 }] }'],
    ['{"1":0,"a":1,"1":0}', '{"a":1,"1":0}'],
    ['{"__proto__":1,"__proto__":1}', '{"__proto__":1}'],
  ])("a member that stands twice in its object is refused, however it is written: %s, but not %s", (twice, once) => {
    expect(() => parse(twice)).toThrow(SyntaxError);
    expect(parse(once)).toEqual(JSON.parse(once));
  });

  test.each(["", "{", "null x", '{"a":1,}'])(
    "what is no JSON is refused where each member must stand once: %j",
    (text) => {
      expect(() => parse(text)).toThrow(SyntaxError);
    },
  );

  test("a value that has no members is read where each must stand once", () => {
    expect(["null", "0", '""', "[]"].map(parse)).toEqual([null, 0, "", []]);
  });
}
