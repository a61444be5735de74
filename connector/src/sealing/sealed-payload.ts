import canonicalize from "canonicalize";
import { decodeBase64url, encodeBase64url } from "../base64url.ts";
import { thumbprintOf } from "../credentials/public-jwk.ts";
import { RelayError } from "../errors.ts";
import { membersOf } from "../frames.ts";
import { MAX_SEALED_BYTES } from "../limits.ts";
import { parseJson } from "../parse-json.ts";
import { isPayload } from "../payload-rules.ts";
import type { Envelope, JsonObject } from "../types.ts";
import { type Ciphertext, type Context, HPKE_BYTES, type KeyPair, openBytes, sealBytes } from "./hpke.ts";

/** What payloads are opened with. */
export interface OpeningKeys {
  /** @param kid thumbprint of the public key. */
  get(kid: string): KeyPair | undefined;
}

/** What a payload is sealed into: it opens in no other envelope. */
export type Surroundings = Pick<Envelope, "id" | "type" | "from" | "to" | "task_id">;

/** A payload that only the recipient can read. */
export interface SealedPayload {
  readonly sealed: {
    readonly v: typeof VERSION;
    /** Thumbprint of the recipient's X25519 key. */
    readonly kid: string;
    /** base64url. */
    readonly enc: string;
    readonly ct: string;
  };
}

const VERSION = 1;
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const INFO = new TextEncoder().encode("agent-relay sealed payload v1");

const NO_PAYLOAD =
  'The payload is not a JSON object that can be sent, such as {"message": "hi"}. JSON has no BigInt, NaN or Infinity.';

/** True for a payload with `sealed` as its only member: the name, alone, means nothing else. */
export function isSealed(payload: object): boolean {
  // Members that are undefined are left out of what is sent.
  const names = Object.entries(payload).flatMap(([name, value]) => (value === undefined ? [] : name));
  return names.length === 1 && names[0] === "sealed";
}

/**
 * What is sealed of a payload. Later changes of it have no effect. Throws `invalid_envelope` for what the relay would not
 * take as a payload, `frame_too_large` for more than 23,000 bytes of JSON.
 */
export function plaintextOf(payload: object): Uint8Array {
  const text = tryCanonicalize(payload);
  if (text === undefined || !isPayload(parseJson(text))) {
    throw new RelayError("invalid_envelope", { message: NO_PAYLOAD });
  }
  const plaintext = new TextEncoder().encode(text);
  if (plaintext.length <= MAX_SEALED_BYTES) return plaintext;
  throw new RelayError("frame_too_large", { message: `The JSON of the payload is over ${MAX_SEALED_BYTES} bytes.` });
}

/** @param recipientKey X25519, base64url, of a credential. */
export async function sealPayload(
  plaintext: Uint8Array,
  surroundings: Surroundings,
  recipientKey: string,
): Promise<SealedPayload> {
  const kid = await thumbprintOf(recipientKey, "X25519");
  const key = decodeBase64url(recipientKey);
  if (key === undefined) throw new RelayError("invalid_key");
  const { enc, ct } = await sealBytes(key, plaintext, contextOf(surroundings, kid));
  return { sealed: { v: VERSION, kid, enc: encodeBase64url(enc), ct: encodeBase64url(ct) } };
}

/** The payload that was sealed; undefined when the envelope's is not one that was sealed for it, to one of these keys. Never rejects. */
export async function openPayload(envelope: Envelope, keys: OpeningKeys): Promise<JsonObject | undefined> {
  const sealed = readSealed(envelope.payload);
  const pair = sealed && keys.get(sealed.kid);
  if (sealed === undefined || pair === undefined) return undefined;
  try {
    const plaintext = await openBytes(pair, sealed, contextOf(envelope, sealed.kid));
    const payload = parseJson(UTF_8.decode(plaintext));
    return isPayload(payload) ? payload : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined for what RFC 8785 cannot express. */
function tryCanonicalize(payload: object): string | undefined {
  try {
    return canonicalize(payload);
  } catch {
    return undefined;
  }
}

/** Source: RFC 8785. */
function contextOf({ from, id, task_id, to, type }: Surroundings, kid: string): Context {
  const members = { from, id, kid, ...(task_id !== undefined && { task_id }), to, type, v: VERSION };
  return { info: INFO, aad: new TextEncoder().encode(canonicalize(members)) };
}

/** The one member and its four, nothing else, each in its one spelling. */
function readSealed(payload: JsonObject): (Ciphertext & { readonly kid: string }) | undefined {
  const members = membersOf(payload.sealed);
  if (Object.keys(payload).length !== 1 || Object.keys(members).length !== 4) return undefined;
  const { v, kid, enc: encText, ct: ctText } = members;
  if (v !== VERSION || typeof kid !== "string" || typeof encText !== "string" || typeof ctText !== "string") {
    return undefined;
  }
  const [enc, ct] = [decodeBase64url(encText), decodeBase64url(ctText)];
  if (enc?.length !== HPKE_BYTES.enc || ct === undefined) return undefined;
  const length = ct.length - HPKE_BYTES.tag;
  return length >= 0 && length <= MAX_SEALED_BYTES ? { kid, enc, ct } : undefined;
}
