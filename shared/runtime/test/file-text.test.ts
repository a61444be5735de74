import { expect, test } from "@jest/globals";
import { markedUtf8, UNMARKED_UTF_16, UTF_16 } from "../../../test/support/temporary-folder.ts";
import { decodeText } from "../src/files.ts";

test("A text of UTF-8 has no byte order mark, whether the file has one or not", () => {
  expect(decodeText(Buffer.from("ä€😀"))).toBe("ä€😀");
  expect(decodeText(markedUtf8("ä€😀"))).toBe("ä€😀");
});

test("Of two byte order marks one is taken off, and none in the midst of a text", () => {
  expect(decodeText(markedUtf8("\ufeffa\ufeff"))).toBe("\ufeffa\ufeff");
});

test.each(["", "\ufeff", "a"])("A text as short as %j is decoded", (text) => {
  expect(decodeText(Buffer.from(text))).toBe(text.replace("\ufeff", ""));
});

test.each(UTF_16)("A file in %s is not taken for UTF-8, however short it is", (_, encoded) => {
  for (const text of ["", "{}", "ä€😀"]) expect(decodeText(encoded(text))).toBeUndefined();
});

test("A file in UTF-16 without a byte order mark is not taken for UTF-8, unlike one that holds NUL", () => {
  for (const bytes of UNMARKED_UTF_16) expect(decodeText(bytes)).toBeUndefined();
  for (const text of ["\0", "\0\0", "a\n\0"]) expect(decodeText(Buffer.from(text))).toBe(text);
});

test.each(["\xe9", '{"a":"\xff"}'])("A file in Latin-1 is not taken for UTF-8: %j", (text) => {
  expect(decodeText(Buffer.from(text, "latin1"))).toBeUndefined();
});
