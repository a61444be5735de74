import { type AgentKey, canonical, type Fields } from "../../support/agent.ts";
import { fc } from "../../support/fast-check.ts";
import { MARK } from "./under-attack.ts";

/** Generators of what an envelope may hold, and of what it must not. */

const name = fc.oneof(
  fc.constantFrom("constructor", "toString", "toJSON", "hasOwnProperty", "length", "prototype", "then", "", "0", "10"),
  fc.string({ unit: "grapheme", maxLength: 8 }).filter((text) => text !== "__proto__"),
);
const numbers = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.constantFrom(-0, 5e-324, 1.7976931348623157e308, 2 ** 53, 1e21, 1e-7, 333333333.3333333),
);
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom("\u0000", "\u2028", "\ufffe", "\ufb33", "😂", '"\\\n', "__proto__", "agent://*", "{0}"),
);

/** Any value that a payload may hold, not too deep. */
const goodValue: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: "small" },
    fc.oneof(text, numbers, fc.boolean(), fc.constant(null)),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4 }),
  ),
})).value;

/** What the sender of a valid message chooses freely. */
export const goodContents = fc.record(
  {
    type: fc.constantFrom("message.send", "message.a", `message.z${"_9".repeat(15)}`),
    task_id: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
    payload: fc.dictionary(name, goodValue, { maxKeys: 5 }),
  },
  { requiredKeys: ["type", "payload"] },
);

const homoglyphs = ["agent://\u0430lice", "agent://ａｌｉｃｅ", "agent://alice\u200b", "ag\u0435nt://alice"];
const patterns = ["agent://*", "agent://{0}", "agent://a:b", "agent://alice\n", "agent://alice\0", "agent://../bob"];
const overlong = fc.integer({ min: 64, max: 3000 }).map((length) => `agent://${"a".repeat(length)}`);

/** A value that stands nowhere in a valid envelope, or not where it is put; every text of it bears the mark. */
export const badValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, [], {}, [[]], 0, -1, 0.5, 2 ** 53, -(2 ** 63), 1e308, -0),
  fc.constantFrom(...homoglyphs, ...patterns, "", " ", "\0", "\ud800", "gateway-1", "message.", "session.request"),
  fc.oneof(text, overlong, fc.string({ unit: "binary", maxLength: 200 })).map((value) => MARK + value),
  fc.dictionary(
    name.map((one) => MARK + one),
    text.map((value) => MARK + value),
    { maxKeys: 3 },
  ),
  fc.array(
    text.map((value) => MARK + value),
    { maxLength: 3 },
  ),
);

export const FIELDS = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id", "sig"] as const;

/** Texts that JSON allows, or almost, and that no value can be made to be. */
export const badJson = fc.constantFrom(
  "1e400",
  "-1e400",
  "-0",
  "1E5",
  "0.1e1",
  "01",
  "0x10",
  "NaN",
  "Infinity",
  "undefined",
  "9".repeat(400),
  `0.${"0".repeat(400)}1`,
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\\x41"',
  '"\t"',
  '{"__proto__":{"admin":true}}',
  '{"\\u005f_proto__":1}',
  '{"constructor":{"prototype":{"admin":true}}}',
  '{"a":1,"a":2}',
  "{}}",
  "[1,]",
  "[".repeat(33) + "]".repeat(33),
  "[".repeat(9000) + "]".repeat(9000),
  `${'{"a":'.repeat(3000)}1${"}".repeat(3000)}`,
);

/**
 * True when the text is a JSON object that this key signed, as the published documents have it: worked out with nothing
 * of the relay's own code. Both algorithms make one signature of one text.
 */
export function isSignedBy(key: AgentKey, envelope: Fields): boolean {
  try {
    return envelope.key_id === key.keyId && key.sign(canonical(envelope)) === envelope.sig;
  } catch {
    return false;
  }
}

/** Another spelling of the same JSON value: order of members, white space, escapes, members that a later one replaces. */
export function respelled(value: unknown, choose: (count: number) => number): string {
  const space = () => ["", " ", "\n", "\t\r "][choose(4)] as string;
  const padded = (text: string) => `${space()}${text}${space()}`;
  if (typeof value === "string") return padded(choose(2) === 0 ? JSON.stringify(value) : escaped(value));
  if (typeof value !== "object" || value === null) return padded(JSON.stringify(value));
  if (Array.isArray(value)) return padded(`[${value.map((item) => respelled(item, choose)).join(",")}]`);
  const members = Object.entries(value).map(
    ([name, member]) =>
      `${padded(choose(2) === 0 ? JSON.stringify(name) : escaped(name))}:${respelled(member, choose)}`,
  );
  const replaced = Object.keys(value)
    .slice(0, choose(3))
    .map((name) => `${JSON.stringify(name)}:"${MARK}"`);
  return padded(`{${[...replaced, ...shuffled(members, choose)].join(",")}}`);
}

function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, "0"));
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
}

function shuffled<T>(items: readonly T[], choose: (count: number) => number): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(choose(rest.length), 1)[0] as T);
}
