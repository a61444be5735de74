import { expect, test } from "@jest/globals";
import { describeJsonParser } from "../../test/support/json-parser.ts";
import { parseJson, parseUniqueJson } from "../src/parse-json.ts";

describeJsonParser(parseJson);

test.each([
  ["", '{"a":1,"a":1}'],
  ["below", '{"a":[{"b":1,"c":2,"b":1}]}'],
  ["once with an escape", '{"a":1,"\\u0061":1}'],
  ["under the name __proto__", '{"__proto__":1,"__proto__":1}'],
])("a member that stands twice is refused where each must stand once: %s", (_, text) => {
  expect(() => parseUniqueJson(text)).toThrow(SyntaxError);
  expect(parseJson(text)).toBeDefined();
});

test("the same name in several objects is no repeat", () => {
  expect(parseUniqueJson('[{"a":{"a":1}},{"a":2}]')).toEqual([{ a: { a: 1 } }, { a: 2 }]);
});
