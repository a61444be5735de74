import { expect, test } from "@jest/globals";
import { crockford } from "../../src/wire/ids.ts";

test("Crockford base32 has no letter that is taken for another, and writes five bits a character", () => {
  expect(crockford(Buffer.from([0, 0, 0, 0, 0]))).toBe("00000000");
  expect(crockford(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]))).toBe("zzzzzzzz");
  expect(crockford(Buffer.from([0x00, 0x44, 0x32, 0x14, 0xc7]))).toBe("01234567");
  expect(crockford(Buffer.from([0x42, 0x54, 0xb6, 0x35, 0xcf]))).toBe("89abcdef");
  expect(crockford(Buffer.from([0x84, 0x65, 0x3a, 0x56, 0xd7]))).toBe("ghjkmnpq");
  expect(crockford(Buffer.from([0xc6, 0x75, 0xbe, 0x77, 0xdf]))).toBe("rstvwxyz");
});
