import { expect, test } from "@jest/globals";
import { describeJsonParser, describeUniqueJsonParser } from "../../../../test/support/json-parser.ts";
import { parseJson, parseUniqueJson } from "../../src/wire/json.ts";

describeJsonParser(parseJson);
describeUniqueJsonParser(parseUniqueJson);

test("where each member must stand once, depth costs no more than its characters: none is too deep to be read", () => {
  const depth = 100_000;
  expect(parseUniqueJson(`${"[".repeat(depth)}${"]".repeat(depth)}`)).toHaveLength(1);
  expect(() => parseUniqueJson(`${"[".repeat(depth)}{"a":1,"a":1}${"]".repeat(depth)}`)).toThrow(SyntaxError);
});
