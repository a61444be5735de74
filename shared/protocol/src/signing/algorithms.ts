import { hash, timingSafeEqual } from "node:crypto";
import sodium from "sodium-native";
import type { SigningAlgorithm, SigningKeyRecord } from "../contract/keys-file.ts";
import { ENVELOPE_LIMITS } from "../wire/limits.ts";

/**
 * Decodes base64url text without padding.
 * @returns undefined for any other text. Node's decoder skips unknown characters and ignores trailing bits. Encoding
 * the bytes again finds both, so one value has exactly one spelling. Source: RFC 4648, sections 3.5 and 5.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}

/** 2^255 − 19. Of the two curves, points whose order divides 8 are forbidden, in all their encodings. */
const FIELD_PRIME = 2n ** 255n - 19n;

/**
 * y of small-order points of Ed25519, for either sign of x. Under such a key one signature is valid for any message.
 */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  FIELD_PRIME - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

/**
 * u of small-order points of X25519. Under such a key the shared secret is known to everybody. Source: RFC 7748,
 * section 6.1.
 */
const SMALL_ORDER_U: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  FIELD_PRIME - 1n,
  0x00b8495f16056286fdb1329ceb8d09da6ac49ff1fae35616aeb8413b7c7aebe0n,
  0x57119fd0dd4e22d8868e1c58c45c44045bef839c55b1d0b1248c50a3bc959c5fn,
]);

/**
 * Top 7 bits of these points and of the prime. Values above the prime share the prime's top bits. Nearly every other
 * key has other top bits, so the check is fast.
 */
const SMALL_ORDER_TOPS: ReadonlySet<number> = new Set([...SMALL_ORDER_Y, FIELD_PRIME].map((y) => Number(y >> 248n)));

/** Also true for a y at or above the prime: a second encoding of a smaller y. */
export function isSmallOrderEd25519(point: Buffer): boolean {
  if (!SMALL_ORDER_TOPS.has((point.at(-1) as number) & 0x7f)) return false;
  const y = numberOf(point) & (2n ** 255n - 1n);
  return y >= FIELD_PRIME || SMALL_ORDER_Y.has(y);
}

/** Also true for a u at or above the prime: a second encoding of a smaller u. */
export function isSmallOrderX25519(point: Buffer): boolean {
  const u = numberOf(point);
  return u >= FIELD_PRIME || SMALL_ORDER_U.has(u);
}

/** Reads little-endian bytes. */
function numberOf(bytes: Buffer): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
}

/**
 * Ed25519 from libsodium. It takes half the time of OpenSSL's, and refuses malleable signatures and small-order points.
 * Source: RFC 8032, section 5.1.
 */

/** Lengths in bytes. The seed is the RFC's private key. */
export const ED25519_BYTES = {
  key: sodium.crypto_sign_PUBLICKEYBYTES,
  seed: sodium.crypto_sign_SEEDBYTES,
  signature: sodium.crypto_sign_BYTES,
} as const;

/**
 * Imports a public key: base64url of 32 bytes.
 * @throws Error, without key text, if the text is malformed or the point has small order. Under such a key one
 * signature is valid for any message.
 */
export function importPublicKey(text: string): Buffer {
  const bytes = decodeBase64url(text);
  if (bytes?.length !== ED25519_BYTES.key) throw new Error("public_key must be base64url of exactly 32 bytes");
  if (isSmallOrderEd25519(bytes)) throw new Error("public_key is a small-order or non-canonical point");
  return bytes;
}

/** The private key of a 32-byte seed in libsodium's form: seed, then public key. Source: RFC 8032, section 5.1.5. */
export function privateKeyOfSeed(seed: Buffer): Buffer {
  const privateKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(Buffer.alloc(ED25519_BYTES.key), privateKey, seed);
  return privateKey;
}

/** The public half of a private key: 32 bytes in base64url. */
export function publicKeyText(privateKey: Buffer): string {
  return privateKey.toString("base64url", ED25519_BYTES.seed);
}

/** @returns the signature of a message, 64 bytes. */
export function signEd25519(privateKey: Buffer, message: Buffer): Buffer {
  const signature = Buffer.alloc(ED25519_BYTES.signature);
  sodium.crypto_sign_detached(signature, message, privateKey);
  return signature;
}

/** True if `signature`, of 64 bytes, is the key's signature of the message. */
export function verifyEd25519(publicKey: Buffer, message: Buffer, signature: Buffer): boolean {
  return sodium.crypto_sign_verify_detached(signature, message, publicKey);
}

/** Bytes of a SHA-256 block and of a digest. */
const BLOCK = 64;
const DIGEST = 32;
/** Padding bytes. Source: RFC 2104. */
const INNER = 0x36;
const OUTER = 0x5c;
/** Most UTF-8 bytes of one UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3;

/** Buffer that each call overwrites: inner block, then text. A text longer than an envelope gets its own buffer. */
const MESSAGE = Buffer.alloc(BLOCK + MAX_BYTES_PER_UNIT * ENVELOPE_LIMITS.maxFrameBytes);

/**
 * HMAC-SHA256 with one secret. Two one-shot hashes over reused buffers take half the time of createHmac, which makes
 * two objects per call. Source: RFC 2104.
 */
export class HmacSecret {
  readonly #inner = Buffer.alloc(BLOCK, INNER);
  /** Outer block, with room for the inner digest. */
  readonly #outer = Buffer.alloc(BLOCK + DIGEST, OUTER);

  constructor(secret: Buffer) {
    const key = secret.length > BLOCK ? hash("sha256", secret, "buffer") : secret;
    for (const [index, byte] of key.entries()) {
      this.#inner[index] = INNER ^ byte;
      this.#outer[index] = OUTER ^ byte;
    }
  }

  /** @returns the MAC of the UTF-8 bytes of `text`, in base64url. */
  sign(text: string): string {
    const isLong = text.length * MAX_BYTES_PER_UNIT > MESSAGE.length - BLOCK;
    const message = isLong ? Buffer.alloc(BLOCK + Buffer.byteLength(text)) : MESSAGE;
    message.set(this.#inner);
    const end = BLOCK + message.write(text, BLOCK);
    this.#outer.write(hash("sha256", message.subarray(0, end), "binary"), BLOCK, "binary");
    return hash("sha256", this.#outer, "base64url");
  }
}

/** Length of `sig` in base64url without padding. Source: docs/protocol.md#envelopes. */
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

/** Imports the key of a record in the keys file. @throws Error, without key text, if the key is unusable. */
export function importVerifyKey(record: SigningKeyRecord): VerifyKey {
  if (record.alg === "ed25519") return { alg: "ed25519", publicKey: importPublicKey(record.public_key) };
  return { alg: "hmac-sha256", secret: importSecret(record.secret) };
}

/** Imports an HMAC secret: base64url of at least 32 bytes. @throws Error as importVerifyKey does. */
export function importSecret(text: string): HmacSecret {
  const bytes = decodeBase64url(text);
  if (bytes === undefined || bytes.length < SECRET_MIN_BYTES) {
    throw new Error("secret must be base64url of at least 32 bytes");
  }
  return new HmacSecret(bytes);
}

/**
 * True if `sig` (base64url) is the key's signature of the UTF-8 bytes of `text`. The key decides the algorithm, never
 * the envelope. Else a public key could serve as an HMAC secret. Never throws.
 */
export function verify(key: VerifyKey, text: string, sig: string): boolean {
  if (sig.length !== SIGNATURE_CHARACTERS[key.alg]) return false;
  if (key.alg === "hmac-sha256") return sameSignature(key.secret.sign(text), sig);
  const signature = decodeBase64url(sig);
  return signature !== undefined && verifyEd25519(key.publicKey, Buffer.from(text), signature);
}

/** @returns the signature of the UTF-8 bytes of `text`, in base64url. */
export function sign(key: SigningKey, text: string): string {
  if (key.alg === "hmac-sha256") return key.secret.sign(text);
  return signEd25519(key.privateKey, Buffer.from(text)).toString("base64url");
}

const EXPECTED = Buffer.alloc(SIGNATURE_CHARACTERS["hmac-sha256"]);
const GIVEN = Buffer.alloc(SIGNATURE_CHARACTERS["hmac-sha256"]);

/** Takes constant time. It compares the encoded texts, so a signature has exactly one spelling. */
function sameSignature(expected: string, given: string): boolean {
  EXPECTED.write(expected);
  return GIVEN.write(given) === GIVEN.length && timingSafeEqual(EXPECTED, GIVEN);
}
