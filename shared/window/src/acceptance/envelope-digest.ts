import { hash } from "node:crypto";
import { CROCKFORD_DIGITS, crockford } from "relay-protocol/contract/crockford.ts";
import { SESSION_ID_PATTERN, SESSION_ID_PREFIX, type UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";

const GUARD_CHARACTERS = 16;
const SESSION_BYTES = 15;

/**
 * What the replay guard stores of an envelope: 16 characters (96 bits) of the SHA-256 of `key_id`, `id`, `ts` and `to`, joined
 * with line feeds, which none of them can contain. With 96 bits no signer finds an envelope of its own that has the digest of
 * another's, and would make that one pass for a repeat. Source: docs/protocol.md#replay.
 */
export function guardDigestOf({ key_id, id, ts, to }: Pick<UnsignedEnvelope, "key_id" | "id" | "ts" | "to">): string {
  return hash("sha256", `${key_id}\n${id}\n${ts}\n${to ?? ""}`, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * What the replay guard tells a decision by until it is accepted, and its session by whom it was decided: of all envelopes
 * with one guard digest only the very same one has the same digest of its text. @param text canonical text with `sig`.
 */
export function textDigestOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, GUARD_CHARACTERS);
}

/**
 * `ses_` and 26 digits of Crockford base32: 2 for the partition, 24 from the SHA-256 of the envelope as it was signed. The
 * same envelope sent again has the same session id. The signature is part of what is hashed: who only guesses the other
 * fields of an envelope cannot compute its session's id. Source: docs/protocol.md#sessions.
 * @param text canonical text with `sig`.
 */
export function sessionIdOf(text: string, partition: number): string {
  const prefix = `${CROCKFORD_DIGITS[partition >> 5]}${CROCKFORD_DIGITS[partition & 31]}`;
  return `${SESSION_ID_PREFIX}${prefix}${crockford(hash("sha256", text, "buffer").subarray(0, SESSION_BYTES))}`;
}

/** The partition that a session id names, or undefined when it is no session id of these partitions. */
export function partitionOfSession(sessionId: string, partitions: number): number | undefined {
  if (!SESSION_ID_PATTERN.test(sessionId)) return undefined;
  const partition = CROCKFORD_DIGITS.indexOf(sessionId.charAt(4)) * 32 + CROCKFORD_DIGITS.indexOf(sessionId.charAt(5));
  return partition < partitions ? partition : undefined;
}
