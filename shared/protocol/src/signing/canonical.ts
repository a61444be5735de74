import canonicalize from "canonicalize";
import type { UnsignedEnvelope } from "../wire/envelope.ts";

/**
 * The signed text: the fields in signing order, without absent fields and white space, with values in the form of RFC
 * 8785. Its UTF-8 bytes are signed. The envelope's shape must be valid: then ids, keys and types hold no character that
 * JSON escapes. Source: docs/protocol.md#signatures.
 * @throws for values that RFC 8785 does not allow: a lone surrogate, or a number that is not finite.
 */
export function canonicalText(envelope: UnsignedEnvelope): string {
  const { id, type, from, to, task_id, payload, ts, key_id } = envelope;
  const target = to === undefined ? "" : `,"to":"${to}"`;
  const task = task_id === undefined ? "" : `,"task_id":${canonicalJson(task_id)}`;
  const head = `{"id":"${id}","type":"${type}","from":"${from}"${target}${task}`;
  return `${head},"payload":${canonicalJson(payload)},"ts":${ts},"key_id":"${key_id}"}`;
}

/** The forwarded text: canonical text with `sig` (base64url) as its last member. */
export function signedText(canonical: string, sig: string): string {
  return `${canonical.slice(0, -1)},"sig":"${sig}"}`;
}

/**
 * A JSON value in the form of RFC 8785: one text for one value, whatever the order of its members.
 * @throws as canonicalText does.
 */
export function canonicalJson(value: unknown): string {
  return isInOrder(value) ? JSON.stringify(value) : (canonicalize(value) as string);
}

/**
 * True if JSON.stringify writes the value in the form of RFC 8785. Strings and numbers always fit, so only the order of
 * members matters. False for values that RFC 8785 does not allow. `canonicalize` then throws.
 */
function isInOrder(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return value === null || typeof value === "boolean";
  if (Array.isArray(value)) return value.every(isInOrder);
  let last = "";
  for (const name of Object.keys(value)) {
    if (name < last || !name.isWellFormed() || !isInOrder((value as Record<string, unknown>)[name])) return false;
    last = name;
  }
  return true;
}
