import { hash } from "node:crypto";
import { ENVELOPE_SCHEMAS, type Envelope, type EnvelopeKind, kindOf } from "../contract/envelope.ts";
import { GATEWAY_KEY_PREFIX } from "../contract/keys-file.ts";
import { ENVELOPE_LIMITS } from "../contract/limits.ts";
import { canonicalText, signedText } from "../signing/canonical.ts";
import type { KeyRing, SigningEntry } from "../signing/key-ring.ts";
import { decode } from "./decode.ts";
import { namedFieldErrors } from "./field-errors.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";

/**
 * The checks of an envelope: decode → shape → size → clock → key → signature → authority, the same for websocket and self-test.
 * Source: docs/protocol.md#envelopes, docs/protocol.md#signatures, docs/protocol.md#keys.
 */

/** An envelope whose shape is valid. `envelope` is the value as it was parsed, not a copy made by the schema. */
export interface ShapedEnvelope {
  readonly envelope: Envelope;
  readonly kind: EnvelopeKind;
}

/** An envelope that passed every check before the signature. */
export interface Candidate extends ShapedEnvelope {
  readonly canonical: string;
  readonly entry: SigningEntry;
}

/** An envelope that passed all checks. */
export interface VerifiedEnvelope extends ShapedEnvelope {
  /** Canonical text with `sig`: what is forwarded. */
  readonly text: string;
  readonly keyId: string;
  /** The key itself, by its identity in the key ring. */
  readonly key: string;
}

/** All checks before the signature, which may be verified on another thread. `now` is Unix ms. Never throws. */
export function checkBeforeSignature(text: string, ring: KeyRing, now: number): Refusal | Candidate {
  const shaped = readShape(text);
  if (isRefusal(shaped)) return shaped;

  const { envelope, kind } = shaped;
  const canonical = canonicalText(envelope);
  const refused = checkSize(envelope, canonical) ?? checkClock(envelope, now);
  if (refused !== undefined) return refused;
  const entry = findKey(envelope, ring, now);
  return isRefusal(entry) ? entry : { envelope, kind, canonical, entry };
}

/** The envelope of a text. Refusals: malformed_json, invalid_envelope. */
export function readShape(text: string): Refusal | ShapedEnvelope {
  const decoded = decode(text);
  return isRefusal(decoded) ? decoded : checkShape(decoded.value);
}

/** The checks that remain once the signature was verified. @param valid whether `sig` is the key's for the canonical text. */
export function checkAfterSignature(candidate: Candidate, valid: boolean): Refusal | VerifiedEnvelope {
  const { envelope, kind, canonical, entry } = candidate;
  const refused = valid ? checkAuthority(envelope, entry) : badSignature(envelope, canonical);
  return (
    refused ?? { envelope, kind, text: signedText(canonical, envelope.sig), keyId: entry.keyId, key: entry.identity }
  );
}

/** Refusal: invalid_envelope. */
function checkShape(value: unknown): Refusal | ShapedEnvelope {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse("invalid_envelope", value, { detail: "An envelope must be a JSON object." });
  }
  const type: unknown = "type" in value ? value.type : undefined;
  const kind = typeof type === "string" ? kindOf(type) : undefined;
  if (kind === undefined) {
    return refuse("invalid_envelope", value, { errors: [{ field: "type", message: "must be a known envelope type" }] });
  }
  const { error } = ENVELOPE_SCHEMAS[kind].safeParse(value);
  if (error !== undefined) return refuse("invalid_envelope", value, { errors: namedFieldErrors(error) });
  return { envelope: value as Envelope, kind };
}

/** Refusal: frame_too_large. The canonical text may be longer than the frame: `1e20` becomes 21 digits. */
function checkSize(envelope: Envelope, canonical: string): Refusal | undefined {
  if (Buffer.byteLength(canonical) <= ENVELOPE_LIMITS.maxFrameBytes) return undefined;
  return refuse("frame_too_large", envelope);
}

/** Refusal: clock_skew. */
export function checkClock(envelope: Envelope, now: number): Refusal | undefined {
  if (Math.abs(envelope.ts - now) <= ENVELOPE_LIMITS.maxClockSkewMs) return undefined;
  return refuse("clock_skew", envelope);
}

/** Refusal: unknown_key. Only gateways use key ids with their prefix, whatever the keys file holds. */
function findKey(envelope: Envelope, ring: KeyRing, now: number): Refusal | SigningEntry {
  if (envelope.key_id.startsWith(GATEWAY_KEY_PREFIX)) return refuse("unknown_key", envelope);
  return ring.signingKey(envelope.key_id, now) ?? refuse("unknown_key", envelope);
}

function badSignature(envelope: Envelope, canonical: string): Refusal {
  return refuse("bad_signature", envelope, { canonicalSha256: hash("sha256", canonical) });
}

/** Refusal: key_not_allowed. Checked after the signature, so that only the holder of a key learns whom it may sign for. */
function checkAuthority(envelope: Envelope, entry: SigningEntry): Refusal | undefined {
  return entry.mayAct(envelope.from) ? undefined : refuse("key_not_allowed", envelope, { keyId: entry.keyId });
}
