import sodium from "sodium-native";
import { decodeBase64url } from "./base64url.ts";
import { isSmallOrderEd25519 } from "./small-order.ts";

/**
 * Ed25519 from libsodium: it takes half the time of OpenSSL's, and refuses malleable signatures and small-order points.
 * Source: RFC 8032, section 5.1.
 */

/** Lengths of a public key, of a seed, which is the private key of the RFC, and of a signature. */
export const ED25519_BYTES = {
  key: sodium.crypto_sign_PUBLICKEYBYTES,
  seed: sodium.crypto_sign_SEEDBYTES,
  signature: sodium.crypto_sign_BYTES,
} as const;

/**
 * The public key in base64url, 32 bytes. @throws Error, without key text, when the text is malformed or the point has small
 * order: under such a key one signature is valid for any message.
 */
export function importPublicKey(text: string): Buffer {
  const bytes = decodeBase64url(text);
  if (bytes?.length !== ED25519_BYTES.key) throw new Error("public_key must be base64url of exactly 32 bytes");
  if (isSmallOrderEd25519(bytes)) throw new Error("public_key is a small-order or non-canonical point");
  return bytes;
}

/** The private key of a 32-byte seed in libsodium's form: the seed, then the public key. Source: RFC 8032, section 5.1.5. */
export function privateKeyOfSeed(seed: Buffer): Buffer {
  const privateKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(Buffer.alloc(ED25519_BYTES.key), privateKey, seed);
  return privateKey;
}

/** The public half of a private key: 32 bytes in base64url. */
export function publicKeyText(privateKey: Buffer): string {
  return privateKey.toString("base64url", ED25519_BYTES.seed);
}

/** The signature of a message, 64 bytes. */
export function signEd25519(privateKey: Buffer, message: Buffer): Buffer {
  const signature = Buffer.alloc(ED25519_BYTES.signature);
  sodium.crypto_sign_detached(signature, message, privateKey);
  return signature;
}

/** True when `signature`, of 64 bytes, is the key's for the message. */
export function verifyEd25519(publicKey: Buffer, message: Buffer, signature: Buffer): boolean {
  return sodium.crypto_sign_verify_detached(signature, message, publicKey);
}
