import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { apiKeyOf, generateApiKey, hashApiKey } from "../../src/signing/api-key.ts";

describe("An API key", () => {
  test("looks like rk_, 30 base62 characters and 6 of checksum, and is a new one each time", () => {
    const keys = Array.from({ length: 200 }, generateApiKey);
    for (const key of keys) {
      expect(key).toMatch(/^rk_[0-9A-Za-z]{36}$/);
      expect(apiKeyOf(key.slice(3, 33))).toBe(key);
    }
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(keys.flatMap((key) => [...key.slice(3, 33)])).size).toBe(62);
  });

  test("carries the CRC-32 of its 30 characters, in base62 with leading zeros", () => {
    expect(apiKeyOf("Relay0123456789abcdefghijkLMNO")).toBe("rk_Relay0123456789abcdefghijkLMNO2d1faw");
    expect(apiKeyOf("000000000000000000000000000405")).toBe("rk_00000000000000000000000000040500azb7");
  });

  test("is kept as the SHA-256 of its whole text", () => {
    const key = generateApiKey();
    expect(hashApiKey(key)).toBe(createHash("sha256").update(key).digest("hex"));
  });
});
