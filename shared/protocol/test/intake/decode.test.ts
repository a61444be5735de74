import { describe, expect, test } from "@jest/globals";
import { decode } from "../../src/intake/steps.ts";

const nested = (levels: number, open = '{"a":', close = "}") => `${open.repeat(levels)}1${close.repeat(levels)}`;
const withPayload = (payload: string) => `{"id":"env-1","payload":${payload}}`;
const tooDeep = {
  code: "invalid_envelope",
  envelopeId: "env-1",
  detail: expect.any(String),
};

describe("Decoding", () => {
  test("hands on the value of a JSON text", () => {
    expect(decode('{"a":[1,"b",null,true]}')).toEqual({ value: { a: [1, "b", null, true] } });
  });

  test.each([
    ["", "nothing"],
    ["{", "a text cut short"],
    ['{"a":1} x', "trailing text"],
    ["{'a':1}", "single quotes"],
    ["NaN", "NaN"],
    ["\ufeff{}", "a byte order mark"],
    ["[".repeat(30_000), "30 KB of open brackets"],
  ])("refuses %# as malformed: $1", (text) => {
    expect(decode(text)).toEqual({ code: "malformed_json" });
  });

  test("takes a payload of 32 levels, objects or arrays, and refuses the 33rd", () => {
    expect(decode(withPayload(nested(32)))).toHaveProperty("value");
    expect(decode(withPayload(nested(33)))).toEqual(tooDeep);
    expect(decode(withPayload(`{"a":${nested(31, "[", "]")}}`))).toHaveProperty("value");
    expect(decode(withPayload(`{"a":${nested(32, "[", "]")}}`))).toEqual(tooDeep);
  });

  const items = (count: number) => `[${Array(count).fill(1)}]`;
  const members = (count: number) => `{${Array.from({ length: count }, (_, n) => `"m${n}":[]`)}}`;

  test.each([
    ["members", members(2000), members(2001)],
    ["elements, below one member", `{"a":${items(1999)}}`, `{"a":${items(2000)}}`],
    ["both, at any depth", `{"a":[${items(998)},${members(999)}]}`, `{"a":[${items(998)},${members(1000)}]}`],
    ["members of many objects", `{"a":[${Array(999).fill('{"b":1}')}]}`, `{"a":[${Array(1000).fill('{"b":1}')}]}`],
  ])("takes a payload of 2000 %s, and refuses one more", (_, payload, larger) => {
    expect(decode(withPayload(payload))).toHaveProperty("value");
    expect(decode(withPayload(larger))).toEqual({ ...tooDeep, detail: expect.stringContaining("2000 members") });
  });

  test("refuses depth that would overflow a recursion, without overflowing", () => {
    expect(decode(withPayload(nested(100_000, "[", "]")))).toEqual(tooDeep);
    expect(decode(nested(100_000))).toEqual({ code: "invalid_envelope", detail: tooDeep.detail });
  });

  test.each([
    ['{"__proto__":{"admin":true}}', "at the top"],
    [withPayload('{"__proto__":1}'), "in the payload"],
    [withPayload('{"a":[{"\\u005f_proto__":null}]}'), "written with an escape, in an array"],
  ])("refuses __proto__ as a member name: %s", (text) => {
    expect(decode(text)).toMatchObject({ code: "invalid_envelope" });
  });

  test("takes __proto__ as a value, and constructor as a name", () => {
    expect(decode('{"constructor":"__proto__"}')).toHaveProperty("value");
  });

  test.each([
    String.raw`{"a":"\ud800"}`,
    String.raw`{"a":["x\udc00\ud800"]}`,
    String.raw`{"\udfff":1}`,
    '{"a":1e400}',
    '{"a":{"b":[-1e400]}}',
  ])("refuses %s", (text) => {
    expect(decode(text)).toEqual({ code: "invalid_envelope", detail: expect.any(String) });
  });

  test("takes surrogate pairs, and numbers at the edge of the doubles", () => {
    expect(decode(String.raw`{"\ud83d\ude02":"\ud83d\ude02","n":[1.7976931348623157e308,5e-324]}`)).toHaveProperty(
      "value",
    );
  });

  test("reads a member name as it is written, whatever JSON.parse has read before", () => {
    JSON.parse('{"stands before":1,"\\\\":2}');
    expect(decode('{"stands before":1,"\\n":2}')).toEqual({ value: { "stands before": 1, "\n": 2 } });
  });

  test("counts the last of two members of one name, as JSON.parse does", () => {
    expect(decode('{"a":1,"a":2}')).toEqual({ value: { a: 2 } });
  });
});
