import { randomFillSync } from "node:crypto";
import { crockford } from "relay-protocol/wire/ids.ts";

/** 20 bytes are 32 characters; 26 of them are 130 bits. */
const BYTES = 20;
const CHARACTERS = 26;

/** Asking for random bytes costs the same for one id as for two hundred. No byte is used twice. */
const pool = Buffer.alloc(BYTES * 200);
let used = pool.length;

/** A random id: `env_` and 26 characters of Crockford base32. Source: docs/protocol.md#http. */
export function newEnvelopeId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = pool.subarray(used, used + BYTES);
  used += BYTES;
  return `env_${crockford(bytes).slice(0, CHARACTERS)}`;
}
