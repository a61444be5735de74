import { hash } from "node:crypto";
import { SESSION_ID_PATTERN } from "../contract/envelope.ts";

const GUARD_CHARACTERS = 16;
const SESSION_BYTES = 15;
const CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * What the replay guard knows an envelope by: a SHA-256 over its `key_id`, `id` and `ts`, of which none can hold the
 * separator, cut to 16 characters, 96 bits, so that no signer finds another's entry. Source: protocol, section 5.
 */
export function guardDigestOf(envelope: { readonly key_id: string; readonly id: string; readonly ts: number }): string {
  const { key_id, id, ts } = envelope;
  return hash("sha256", `${key_id}\n${id}\n${ts}`, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * `ses_` and 26 characters of Crockford base32: 2 of the partition, 24 of a SHA-256 over the envelope as it was signed. A
 * repeat names the same session; and since the signature is in it, nobody finds an id by guessing the envelope.
 * Source: protocol, section 8.
 * @param text canonical text with `sig`.
 */
export function sessionIdOf(text: string, partition: number): string {
  const prefix = `${CROCKFORD[partition >> 5]}${CROCKFORD[partition & 31]}`;
  return `ses_${prefix}${crockford(hash("sha256", text, "buffer").subarray(0, SESSION_BYTES))}`;
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
