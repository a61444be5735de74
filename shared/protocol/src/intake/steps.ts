import { hash } from "node:crypto";
import { ENVELOPE_SCHEMAS } from "../contract/envelope.ts";
import { GATEWAY_KEY_PREFIX } from "../contract/keys-file.ts";
import { SIGNATURE_CHARACTERS } from "../signing/algorithms.ts";
import { canonicalText, signedText } from "../signing/canonical.ts";
import type { Credential } from "../signing/credentials.ts";
import type { KeyRing, SigningEntry } from "../signing/key-ring.ts";
import { type Envelope, type EnvelopeKind, KEY_ID_PATTERN, kindOf, TYPE_RULE } from "../wire/envelope.ts";
import type { FieldError } from "../wire/errors.ts";
import { AGENT_ID_PATTERN } from "../wire/ids.ts";
import { parseJson, valueProblem } from "../wire/json.ts";
import { ENVELOPE_LIMITS } from "../wire/limits.ts";
import {
  type BroughtKeys,
  entryOfCredential,
  isCredentialKey,
  type KnownKeys,
  type PresentedCredential,
  presentedCredential,
} from "./credential-step.ts";
import { checkDestination } from "./destination-step.ts";
import { IN_PLAIN_WORDS, isRefusal, namedFieldErrors, type Refusal, refuse } from "./refusal.ts";

/**
 * Parses a JSON text and refuses values that JSON allows and the relay does not. These are a payload of more than 32
 * levels or 2,000 members, the member name `__proto__`, lone surrogates, and numbers that are not finite doubles. This
 * must come right after parsing: later steps would overflow the stack, or silently drop `__proto__`. Refusals:
 * malformed_json, invalid_envelope. Source: docs/protocol.md#envelopes.
 */
export function decode(text: string): { readonly value: unknown } | Refusal {
  const parsed = parse(text);
  if (parsed === undefined) return refuse("malformed_json", undefined);
  const detail = valueProblem(parsed.value, 0);
  return detail === undefined ? parsed : refuse("invalid_envelope", parsed.value, { detail });
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}

/**
 * Checks of an envelope: decode → clock → credential → key → shape → destination → size → signature → authority. Websocket and
 * self-test share them. The costly steps, schema and canonical text, come after the key. So only a sender that names a
 * valid key can cause their cost. Source: docs/protocol.md#envelopes, docs/protocol.md#signatures,
 * docs/protocol.md#keys.
 */

/** An envelope with a valid shape. `envelope` is the parsed value, not the schema's copy. */
export interface ShapedEnvelope {
  readonly envelope: Envelope;
  readonly kind: EnvelopeKind;
}

/** The connection of an incoming envelope. */
interface Incoming {
  /** The id in `hello`. Undefined if the envelope has no connection. */
  readonly id?: string;
  readonly credentials?: BroughtKeys | undefined;
}

/** An envelope that passed every check before the signature. */
export interface Candidate extends ShapedEnvelope {
  readonly canonical: string;
  readonly entry: SigningEntry;
  /** The credential that a register presents. Its signature also needs verifying. */
  readonly credential: PresentedCredential | undefined;
}

/** An envelope that passed all checks. */
export interface VerifiedEnvelope extends ShapedEnvelope {
  /** Canonical text with `sig`, as the relay forwards it. */
  readonly text: string;
  readonly keyId: string;
  /** Identity of the key in the key ring. */
  readonly key: string;
  /** Issuer of the key's credential. Undefined for a listed key. */
  readonly issuer: string | undefined;
  /** The credential that a register presented. */
  readonly credential: Credential | undefined;
}

/** All checks before the signature, which another thread may verify. Never throws. @param now Unix ms. */
export function checkBeforeSignature(
  text: string,
  keys: KnownKeys,
  now: number,
  connection: Incoming = {},
): Refusal | Candidate {
  const decoded = decode(text);
  if (isRefusal(decoded)) return decoded;
  const terms = readTerms(decoded.value);
  if (isRefusal(terms)) return terms;
  const late = checkClock(terms, now);
  if (late !== undefined) return late;
  const credential = presentedCredential(terms, keys, now);
  if (credential !== undefined && isRefusal(credential)) return credential;
  const entry =
    credential === undefined
      ? findKey(terms, keys.ring, now, connection.credentials)
      : entryOfCredential(credential.credential);
  if (isRefusal(entry)) return entry;
  const shaped = checkShape(decoded.value);
  if (isRefusal(shaped)) return shaped;

  const { envelope, kind } = shaped;
  const stray = checkDestination(envelope, kind, keys.hosts, connection.id);
  if (stray !== undefined) return stray;
  const canonical = canonicalText(envelope);
  return checkSize(envelope, canonical) ?? { envelope, kind, canonical, entry, credential };
}

/** Parses an envelope and checks its shape. Refusals: malformed_json, invalid_envelope. */
export function readShape(text: string): Refusal | ShapedEnvelope {
  const decoded = decode(text);
  return isRefusal(decoded) ? decoded : checkShape(decoded.value);
}

/**
 * The checks after the signatures. The signature of a presented credential is already verified.
 * @param isSigned whether `sig` is the key's signature of the canonical text.
 */
export function checkAfterSignature(candidate: Candidate, isSigned: boolean): Refusal | VerifiedEnvelope {
  const { envelope, kind, canonical, entry, credential } = candidate;
  if (!isSigned) return badSignature(candidate);
  const refused = checkAuthority(envelope, entry);
  if (refused !== undefined) return refused;
  const text = signedText(canonical, envelope.sig);
  const { keyId, identity: key, issuer } = entry;
  return { envelope, kind, text, keyId, key, issuer, credential: credential?.credential };
}

/** Other required members. A refusal lists all that are missing, so that the sender can fix them at once. */
const OTHER_MEMBERS = ["id", "type", "from", "payload", "sig"] as const satisfies readonly (keyof Envelope)[];

/** Fields for the checks of clock and key. The envelope's shape may still be invalid. */
type Terms = Pick<Envelope, "ts" | "key_id"> & {
  readonly type?: unknown;
  readonly from?: unknown;
  readonly payload?: unknown;
};

/** Refusal: invalid_envelope. */
function readTerms(value: unknown): Refusal | Terms {
  if (!isObject(value)) return notAnObject(value);
  const { ts, key_id } = value as { readonly [name: string]: unknown };
  const errors: FieldError[] = [];
  if (!Number.isSafeInteger(ts)) errors.push({ field: "ts", message: "must be an integer of epoch milliseconds" });
  if (typeof key_id !== "string" || !KEY_ID_PATTERN.test(key_id)) {
    errors.push({ field: "key_id", message: "must be the id of a key" });
  }
  if (errors.length === 0) return value as Terms;
  const absent = OTHER_MEMBERS.filter((name) => !Object.hasOwn(value, name));
  return refuse("invalid_envelope", value, {
    errors: [...errors, ...absent.map((field) => ({ field, message: "is required" }))],
  });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notAnObject(value: unknown): Refusal {
  return refuse("invalid_envelope", value, { detail: "An envelope must be a JSON object." });
}

/** Refusal: invalid_envelope. */
function checkShape(value: unknown): Refusal | ShapedEnvelope {
  if (!isObject(value)) return notAnObject(value);
  const type: unknown = "type" in value ? value.type : undefined;
  const kind = typeof type === "string" ? kindOf(type) : undefined;
  if (kind === undefined) {
    return refuse("invalid_envelope", value, { errors: [{ field: "type", message: TYPE_RULE }] });
  }
  const { error } = ENVELOPE_SCHEMAS[kind].safeParse(value, IN_PLAIN_WORDS);
  if (error !== undefined) return refuse("invalid_envelope", value, { errors: namedFieldErrors(error) });
  return { envelope: value as Envelope, kind };
}

/** Refusal: frame_too_large. The canonical text may be longer than the frame: `1e20` becomes 21 digits. */
function checkSize(envelope: Envelope, canonical: string): Refusal | undefined {
  if (Buffer.byteLength(canonical) <= ENVELOPE_LIMITS.maxFrameBytes) return undefined;
  return refuse("frame_too_large", envelope);
}

const SECONDS_HINT = "ts is in seconds: give it in milliseconds, 1000 times as much.";

/** Refusal: clock_skew. */
function checkClock(terms: Terms, now: number): Refusal | undefined {
  if (Math.abs(terms.ts - now) <= ENVELOPE_LIMITS.maxClockSkewMs) return undefined;
  const isInSeconds = Math.abs(terms.ts * 1000 - now) <= ENVELOPE_LIMITS.maxClockSkewMs;
  return refuse("clock_skew", terms, isInSeconds ? { hint: SECONDS_HINT } : {});
}

/**
 * Refusals: unknown_key, and the refusals of `brought`. Key ids with the gateway prefix are unknown here, whatever the
 * keys file holds: only gateways use them.
 */
function findKey(terms: Terms, ring: KeyRing, now: number, brought?: BroughtKeys): Refusal | SigningEntry {
  const { key_id } = terms;
  if (key_id.startsWith(GATEWAY_KEY_PREFIX)) return unknownKey(terms);
  if (!isCredentialKey(key_id)) return ring.signingKey(key_id, now) ?? unknownKey(terms);
  return brought?.keyOf(key_id, terms.from, ring, now) ?? unknownCredentialKey(terms);
}

/** A register that brought a credential was already judged by it. */
function unknownCredentialKey(terms: Terms): Refusal {
  const lacksCredential = terms.type === "agent.register" && { hint: REGISTER_HINT };
  return { ...unknownKey(terms), credentialKey: terms.key_id, ...lacksCredential };
}

const REGISTER_HINT =
  "payload.credential is missing: a register under a jkt- key carries the credential there, and payload.relay.";

function unknownKey(terms: Terms): Refusal {
  const isAgent = typeof terms.from === "string" && AGENT_ID_PATTERN.test(terms.from);
  return refuse("unknown_key", terms, isAgent ? { from: terms.from as string } : {});
}

function badSignature({ envelope, canonical, entry }: Candidate): Refusal {
  const { alg } = entry.key;
  const characters = SIGNATURE_CHARACTERS[alg];
  const detail = `The key's algorithm is ${alg}: sig must have ${characters} characters.`;
  return refuse("bad_signature", envelope, {
    ...(envelope.sig.length !== characters && { detail }),
    canonicalSha256: hash("sha256", canonical),
  });
}

/** Refusal: key_not_allowed. It comes after the signature, so that only the holder of a key learns its agents. */
function checkAuthority(envelope: Envelope, entry: SigningEntry): Refusal | undefined {
  if (entry.mayAct(envelope.from)) return undefined;
  const { keyId, issuer } = entry;
  return refuse("key_not_allowed", envelope, { from: envelope.from, signer: { keyId, issuer } });
}
