import canonicalize from "canonicalize";
import { CANONICAL_SIGNING_ORDER, type UnsignedEnvelope } from "../contract/envelope.ts";

/**
 * The text whose UTF-8 bytes are signed: the fields in signing order, absent ones left out, no white space, every
 * value by RFC 8785. Throws on what RFC 8785 cannot express (a lone surrogate, a number that is not finite).
 * Source: protocol, section 3.
 */
export function canonicalText(envelope: UnsignedEnvelope): string {
  let text = "";
  for (const name of CANONICAL_SIGNING_ORDER) {
    const value = envelope[name];
    if (value === undefined) continue;
    text += `${text === "" ? "{" : ","}"${name}":${canonicalize(value)}`;
  }
  return `${text}}`;
}

/** What is forwarded: the canonical text with `sig` as its last member. `sig` is base64url. */
export function signedText(canonical: string, sig: string): string {
  return `${canonical.slice(0, -1)},"sig":"${sig}"}`;
}

/** Any JSON value by RFC 8785: one text for one value, whatever the order of its members. Throws as canonicalText does. */
export function canonicalJson(value: unknown): string {
  return canonicalize(value) as string;
}
