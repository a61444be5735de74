import { timingSafeEqual } from "node:crypto";
import type { SigningAlgorithm, SigningKeyRecord } from "../contract/keys-file.ts";
import { decodeBase64url } from "./base64url.ts";
import { importPublicKey, signEd25519, verifyEd25519 } from "./ed25519.ts";
import { HmacSecret } from "./hmac.ts";

/** Length of `sig`: base64url, no padding. Source: docs/protocol.md#envelopes. */
export const SIGNATURE_CHARACTERS: Record<SigningAlgorithm, number> = { "hmac-sha256": 43, ed25519: 86 };

const SECRET_MIN_BYTES = 32;

interface HmacKey {
  readonly alg: "hmac-sha256";
  readonly secret: HmacSecret;
}

/** A key that verifies signatures. */
export type VerifyKey = HmacKey | { readonly alg: "ed25519"; readonly publicKey: Buffer };

/** A key that makes signatures. */
export type SigningKey = HmacKey | { readonly alg: "ed25519"; readonly privateKey: Buffer };

/** The key of a record in the keys file. @throws Error when it cannot be used; the message holds no key text. */
export function importVerifyKey(record: SigningKeyRecord): VerifyKey {
  if (record.alg === "ed25519") return { alg: "ed25519", publicKey: importPublicKey(record.public_key) };
  return { alg: "hmac-sha256", secret: importSecret(record.secret) };
}

/** The HMAC secret in base64url text, at least 32 bytes. @throws Error as importVerifyKey does. */
export function importSecret(text: string): HmacSecret {
  const bytes = decodeBase64url(text);
  if (bytes === undefined || bytes.length < SECRET_MIN_BYTES) {
    throw new Error("secret must be base64url of at least 32 bytes");
  }
  return new HmacSecret(bytes);
}

/**
 * True when `sig` (base64url) is the key's signature of the UTF-8 bytes of `text`. The key decides on the algorithm, never
 * the envelope: else a public key could be used as an HMAC secret. Never throws.
 */
export function verify(key: VerifyKey, text: string, sig: string): boolean {
  if (sig.length !== SIGNATURE_CHARACTERS[key.alg]) return false;
  if (key.alg === "hmac-sha256") return sameSignature(key.secret.sign(text), sig);
  const signature = decodeBase64url(sig);
  return signature !== undefined && verifyEd25519(key.publicKey, Buffer.from(text), signature);
}

/** The signature of the UTF-8 bytes of `text`, in base64url. */
export function sign(key: SigningKey, text: string): string {
  if (key.alg === "hmac-sha256") return key.secret.sign(text);
  return signEd25519(key.privateKey, Buffer.from(text)).toString("base64url");
}

const EXPECTED = Buffer.alloc(SIGNATURE_CHARACTERS["hmac-sha256"]);
const GIVEN = Buffer.alloc(SIGNATURE_CHARACTERS["hmac-sha256"]);

/** In constant time. The encoded texts are compared, so that a signature has exactly one spelling. */
function sameSignature(expected: string, given: string): boolean {
  EXPECTED.write(expected);
  return GIVEN.write(given) === GIVEN.length && timingSafeEqual(EXPECTED, GIVEN);
}
