import { hash } from "node:crypto";
import { SESSION_ID_PATTERN } from "../contract/envelope.ts";

/**
 * What an envelope is known by: its `key_id`, `id` and `ts`. The replay guard and the session id are both made of
 * this digest, so that a repeat meets its guard entry and names the same session. Source: protocol, sections 5 and 8.
 */

const GUARD_CHARACTERS = 16;
const SESSION_BYTES = 15;
const CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz";

/** Identity of one envelope. */
export interface EnvelopeDigest {
  /** 16 characters, for the replay guard: 96 bits, so that no signer finds another's entry. */
  readonly guard: string;
  /** All of it, base64url. */
  readonly text: string;
}

/** SHA-256 over key_id, id and ts; none of the three can hold the separator. */
export function digestOf(envelope: {
  readonly key_id: string;
  readonly id: string;
  readonly ts: number;
}): EnvelopeDigest {
  const text = hash("sha256", `${envelope.key_id}\n${envelope.id}\n${envelope.ts}`, "base64url");
  return { guard: text.slice(0, GUARD_CHARACTERS), text };
}

/**
 * `ses_` and 26 characters of Crockford base32: 2 of the partition, 24 of the envelope's digest under the window's salt,
 * so that a repeat names the same session, and nobody outside finds an id by guessing the envelope.
 */
export function sessionIdOf(digest: EnvelopeDigest, partition: number, salt: string): string {
  const prefix = `${CROCKFORD[partition >> 5]}${CROCKFORD[partition & 31]}`;
  const bytes = hash("sha256", `${salt}\n${digest.text}`, "buffer").subarray(0, SESSION_BYTES);
  return `ses_${prefix}${crockford(bytes)}`;
}

/** The partition that a session id names, or undefined when it is no session id of these partitions. */
export function partitionOfSession(sessionId: string, partitions: number): number | undefined {
  if (!SESSION_ID_PATTERN.test(sessionId)) return undefined;
  const partition = CROCKFORD.indexOf(sessionId.charAt(4)) * 32 + CROCKFORD.indexOf(sessionId.charAt(5));
  return partition < partitions ? partition : undefined;
}

/** Crockford base32 in lower case of a whole number of 5-byte groups. */
export function crockford(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += CROCKFORD[(value >> bits) & 31];
    }
  }
  return text;
}
