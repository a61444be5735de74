import { hash } from "node:crypto";
import type { RateHolder } from "./principal.ts";

const CHARACTERS = 11;

/** Of the holder that was asked for last: the agents of one issuer register one after the other. */
let lastHolder: RateHolder | undefined;
let lastDigest = "";

/**
 * What names and values of Redis hold of a principal, or of an agent of an issuer, in place of its id: the first 11 characters,
 * 66 bits, of the SHA-256 of the id with its kind before it, in base64url. An operator names the principals; an issuer names its
 * agents, and would have to try 2^66 names to find one that shares the leases of a given other holder.
 */
export function holderDigestOf(holder: RateHolder): string {
  if (holder !== lastHolder) {
    lastDigest = hash("sha256", holder, "base64url").slice(0, CHARACTERS);
    lastHolder = holder;
  }
  return lastDigest;
}
