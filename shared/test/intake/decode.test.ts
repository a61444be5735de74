import { describe, expect, test } from "@jest/globals";
import { decode } from "../../src/intake/decode.ts";

const nested = (levels: number, open = '{"a":', close = "}") => `${open.repeat(levels)}1${close.repeat(levels)}`;
const withPayload = (payload: string) => `{"id":"env-1","payload":${payload}}`;
const tooDeep = {
  code: "invalid_envelope",
  envelopeId: "env-1",
  detail: "The payload is nested more than 32 levels deep.",
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

  test("refuses depth that would overflow a recursion, without overflowing", () => {
    expect(decode(withPayload(nested(100_000, "[", "]")))).toEqual(tooDeep);
    expect(decode(nested(100_000))).toEqual({ code: "invalid_envelope", detail: tooDeep.detail });
  });

  test.each([
    ['{"__proto__":{"admin":true}}', "at the top"],
    [withPayload('{"__proto__":1}'), "in the payload"],
    [withPayload('{"a":[{"\\u005f_proto__":null}]}'), "written with an escape, in an array"],
  ])("refuses __proto__ as a member name: %s", (text) => {
    expect(decode(text)).toMatchObject({ code: "invalid_envelope", detail: "A member is named __proto__." });
  });

  test("takes __proto__ as a value, and constructor as a name", () => {
    expect(decode('{"constructor":"__proto__"}')).toHaveProperty("value");
  });

  test.each([
    [String.raw`{"a":"\ud800"}`, "A string holds a lone surrogate."],
    [String.raw`{"a":["x\udc00\ud800"]}`, "A string holds a lone surrogate."],
    [String.raw`{"\udfff":1}`, "A member name holds a lone surrogate."],
    ['{"a":1e400}', "A number is not a finite double."],
    ['{"a":{"b":[-1e400]}}', "A number is not a finite double."],
  ])("refuses %s", (text, detail) => {
    expect(decode(text)).toEqual({ code: "invalid_envelope", detail });
  });

  test("takes surrogate pairs, and numbers at the edge of the doubles", () => {
    expect(decode(String.raw`{"\ud83d\ude02":"\ud83d\ude02","n":[1.7976931348623157e308,5e-324]}`)).toHaveProperty(
      "value",
    );
  });

  test("counts the last of two members of one name, as JSON.parse does", () => {
    expect(decode('{"a":1,"a":2}')).toEqual({ value: { a: 2 } });
  });
});
