import canonicalize from "canonicalize";
import { CANONICAL_SIGNING_ORDER, type UnsignedEnvelope } from "../contract/envelope.ts";

/**
 * The text whose UTF-8 bytes are signed: the fields in signing order, absent ones left out, no white space, every value
 * in the form of RFC 8785. Throws on what RFC 8785 does not allow (a lone surrogate, a number that is not finite).
 * Source: docs/protocol.md#signatures.
 */
export function canonicalText(envelope: UnsignedEnvelope): string {
  const signed: Record<string, unknown> = {};
  for (const name of CANONICAL_SIGNING_ORDER) {
    const value = envelope[name];
    if (value !== undefined) signed[name] = value;
  }
  const values = Object.values(signed);
  if (values.every(isInOrder)) return JSON.stringify(signed);
  return `{${Object.keys(signed).map((name, index) => `"${name}":${canonicalJson(values[index])}`)}}`;
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
