import canonicalize from "canonicalize";
import type { Envelope } from "./types.ts";

/** The canonical text: what is signed. Source: docs/protocol.md#signatures, RFC 8785. */

/** An envelope before it has a time and a key. */
export type Draft = Omit<Envelope, "ts" | "key_id" | "sig">;

const DRAFT_ORDER = ["id", "type", "from", "to", "task_id", "payload"] as const satisfies (keyof Draft)[];

/**
 * The canonical text up to the payload: time and key come last, and are known only when it goes out. Later changes of
 * the payload object have no effect. Throws on what RFC 8785 cannot express (a cycle, a lone surrogate, a number that is
 * not finite).
 */
export function draftText(draft: Draft): string {
  const members = DRAFT_ORDER.filter((name) => draft[name] !== undefined);
  return `{${members.map((name) => `"${name}":${canonicalize(draft[name])}`).join(",")}`;
}

/** @param ts epoch milliseconds. */
export function canonicalText(draft: string, ts: number, keyId: string): string {
  return `${draft},"ts":${canonicalize(ts)},"key_id":${canonicalize(keyId)}}`;
}

/** What goes over the wire: the canonical text with `sig` as its last member. */
export function signedText(canonical: string, sig: string): string {
  return `${canonical.slice(0, -1)},"sig":"${sig}"}`;
}

/** The text that an envelope's `sig` signs. Throws as draftText does. */
export function signedPart(envelope: Envelope): string {
  return canonicalText(draftText(envelope), envelope.ts, envelope.key_id);
}
