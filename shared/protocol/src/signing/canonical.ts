import canonicalize from "canonicalize";
import type { UnsignedEnvelope } from "../wire/envelope.ts";

/**
 * The text whose UTF-8 bytes are signed: the fields in signing order, absent ones left out, no white space, every value
 * in the form of RFC 8785. Throws on what RFC 8785 does not allow (a lone surrogate, a number that is not finite).
 * The shape of the envelope has been checked: ids, keys and types hold no character that JSON escapes.
 * Source: docs/protocol.md#signatures.
 */
export function canonicalText(envelope: UnsignedEnvelope): string {
  const { id, type, from, to, task_id, payload, ts, key_id } = envelope;
  const target = to === undefined ? "" : `,"to":"${to}"`;
  const task = task_id === undefined ? "" : `,"task_id":${canonicalJson(task_id)}`;
  const head = `{"id":"${id}","type":"${type}","from":"${from}"${target}${task}`;
  return `${head},"payload":${canonicalJson(payload)},"ts":${ts},"key_id":"${key_id}"}`;
}

/** What is forwarded: the canonical text with `sig` as its last member. `sig` is base64url. */
export function signedText(canonical: string, sig: string): string {
  return `${canonical.slice(0, -1)},"sig":"${sig}"}`;
}

/** Any JSON value in the form of RFC 8785: one text for one value, in any order of members. Throws as canonicalText does. */
export function canonicalJson(value: unknown): string {
  return isInOrder(value) ? JSON.stringify(value) : (canonicalize(value) as string);
}

/**
 * True when JSON.stringify writes the value as RFC 8785 requires: strings and numbers are always the same, so the members
 * must only be in order. False for what RFC 8785 does not allow, on which `canonicalize` then throws.
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
