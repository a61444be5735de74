import { ENVELOPE_SCHEMAS, type Envelope, type EnvelopeKind, kindOf } from "../contract/envelope.ts";
import { GATEWAY_KEY_PREFIX } from "../contract/keys-file.ts";
import { ENVELOPE_LIMITS } from "../contract/limits.ts";
import { canonicalText, signedText } from "../signing/canonical.ts";
import type { KeyRing, SigningEntry } from "../signing/key-ring.ts";
import { decode } from "./decode.ts";
import { fieldErrors } from "./field-errors.ts";
import { isRefusal, type Refusal, refuse } from "./refusal.ts";

/**
 * Intake: decode → shape → size → clock → key → signature → authority, the same for the websocket and the self-test.
 * Source: protocol, sections 2–4.
 */

/** An envelope of known shape and kind. `envelope` is the value as it was parsed, not a copy that a schema re-shaped. */
export interface ShapedEnvelope {
  readonly envelope: Envelope;
  readonly kind: EnvelopeKind;
}

/** An envelope that passed every step but signature and authority. */
export interface Candidate extends ShapedEnvelope {
  readonly canonical: string;
  readonly entry: SigningEntry;
}

/** An envelope that its sender signed, with a key that may sign for the sender. */
export interface VerifiedEnvelope extends ShapedEnvelope {
  /** Canonical text with `sig`: what is forwarded. */
  readonly text: string;
  readonly keyId: string;
}

/** The steps that need no waiting. `now` is epoch ms. Never throws. */
export function inspect(text: string, ring: KeyRing, now: number): Refusal | Candidate {
  const decoded = decode(text);
  if (isRefusal(decoded)) return decoded;
  const shaped = checkShape(decoded.value);
  if (isRefusal(shaped)) return shaped;

  const { envelope, kind } = shaped;
  const canonical = canonicalText(envelope);
  const refused = checkSize(envelope, canonical) ?? checkClock(envelope, now);
  if (refused !== undefined) return refused;
  const entry = findKey(envelope, ring, now);
  return isRefusal(entry) ? entry : { envelope, kind, canonical, entry };
}

/** The last two steps. @param valid whether `sig` is the key's for the canonical text. */
export function conclude(candidate: Candidate, valid: boolean): Refusal | VerifiedEnvelope {
  const { envelope, kind, canonical, entry } = candidate;
  const refused = valid ? checkAuthority(envelope, entry) : refuse("bad_signature", envelope);
  return refused ?? { envelope, kind, text: signedText(canonical, envelope.sig), keyId: entry.keyId };
}

/** Refusal: invalid_envelope. */
export function checkShape(value: unknown): Refusal | ShapedEnvelope {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse("invalid_envelope", value, { detail: "An envelope is a JSON object." });
  }
  const type: unknown = "type" in value ? value.type : undefined;
  const kind = typeof type === "string" ? kindOf(type) : undefined;
  if (kind === undefined) {
    return refuse("invalid_envelope", value, { errors: [{ field: "type", message: "not an envelope type" }] });
  }
  const { error } = ENVELOPE_SCHEMAS[kind].safeParse(value);
  if (error !== undefined) return refuse("invalid_envelope", value, { errors: fieldErrors(error) });
  return { envelope: value as Envelope, kind };
}

/** Refusal: frame_too_large. Canonical text may be longer than the frame was: `1e20` has 21 digits. */
export function checkSize(envelope: Envelope, canonical: string): Refusal | undefined {
  if (Buffer.byteLength(canonical) <= ENVELOPE_LIMITS.maxFrameBytes) return undefined;
  return refuse("frame_too_large", envelope);
}

/** Refusal: clock_skew. */
export function checkClock(envelope: Envelope, now: number): Refusal | undefined {
  if (Math.abs(envelope.ts - now) <= ENVELOPE_LIMITS.maxClockSkewMs) return undefined;
  return refuse("clock_skew", envelope);
}

/** Refusal: unknown_key. Nobody outside signs as a gateway, whatever a ring holds. */
export function findKey(envelope: Envelope, ring: KeyRing, now: number): Refusal | SigningEntry {
  if (envelope.key_id.startsWith(GATEWAY_KEY_PREFIX)) return refuse("unknown_key", envelope);
  return ring.signingKey(envelope.key_id, now) ?? refuse("unknown_key", envelope);
}

/** Refusal: key_not_allowed. Comes after the signature: only the key's holder learns whom it may sign for. */
export function checkAuthority(envelope: Envelope, entry: SigningEntry): Refusal | undefined {
  return entry.mayAct(envelope.from) ? undefined : refuse("key_not_allowed", envelope);
}
