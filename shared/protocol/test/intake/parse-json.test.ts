import { expect, test } from "@jest/globals";
import { describeJsonParser } from "../../../../test/support/json-parser.ts";
import { parseJson, parseUniqueJson } from "../../src/intake/parse-json.ts";

describeJsonParser(parseJson);

test("where each member must stand once, depth costs no more than its characters: none is too deep to be read", () => {
  const depth = 100_000;
  expect(parseUniqueJson(`${"[".repeat(depth)}${"]".repeat(depth)}`)).toHaveLength(1);
  expect(() => parseUniqueJson(`${"[".repeat(depth)}{"a":1,"a":1}${"]".repeat(depth)}`)).toThrow(SyntaxError);
});

test.each([
  ['{"a":1,"a":1}', '{"a":1}'],
  ['{"a":{"b":1,"b":2}}', '{"a":{"b":1}}'],
  ['{"a":1,"\\u0061":1}', '{"a":1}'],
  ['{ "a": 1, "a": 1 }', '{ "a": 1, "b": [{ "a": 1 }] }'],
  ['{"1":0,"a":1,"1":0}', '{"a":1,"1":0}'],
  ['{"__proto__":1,"__proto__":1}', '{"__proto__":1}'],
])("a member that stands twice is refused, however it is written: %s, but not %s", (twice, once) => {
  expect(() => parseUniqueJson(twice)).toThrow(SyntaxError);
  expect(parseUniqueJson(once)).toEqual(JSON.parse(once));
});

test("what is no JSON is refused where each member must stand once, too", () => {
  for (const text of ["", "{", "null x", '{"a":1,}']) expect(() => parseUniqueJson(text)).toThrow(SyntaxError);
  expect(parseUniqueJson("null")).toBeNull();
});
