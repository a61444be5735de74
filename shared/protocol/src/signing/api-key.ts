import { hash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

/**
 * API keys: `rk_`, 30 random base62 characters, and the CRC-32 of the 30 characters as 6 base62 characters.
 * Source: docs/protocol.md#keys.
 */

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS = 30;
const CHECKSUM_CHARACTERS = 6;

/** Makes a key with 178 random bits. Show the key once and store only its hash. */
export function generateApiKey(): string {
  return apiKeyOf(Array.from({ length: RANDOM_CHARACTERS }, () => BASE62[randomInt(BASE62.length)]).join(""));
}

/**
 * Makes a key from 30 random characters. The checksum is for scanners that look for leaked keys. The relay does not
 * check it.
 */
export function apiKeyOf(random: string): string {
  return `rk_${random}${checksum(random)}`;
}

/** Hex SHA-256 of the whole key text. Only this form is stored. */
export function hashApiKey(text: string): string {
  return hash("sha256", text);
}

function checksum(random: string): string {
  let rest = crc32(random);
  let text = "";
  for (let i = 0; i < CHECKSUM_CHARACTERS; i++) {
    text = BASE62.charAt(rest % BASE62.length) + text;
    rest = Math.floor(rest / BASE62.length);
  }
  return text;
}
