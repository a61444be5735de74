import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { decodeBase64url } from "./base64url.ts";

const KEY_BYTES = 32;
const FIELD_PRIME = 2n ** 255n - 19n;

/** The y coordinates of the eight points whose order divides 8; the sign of x makes no difference. */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  FIELD_PRIME - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

/** DER of a PKCS#8 Ed25519 private key, up to its seed. Source: RFC 8410, section 7. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/**
 * The public key of 32 bytes in base64url. Throws an Error, its message free of key text, when the text is malformed
 * or the point is of small order: under such a key one signature fits any message.
 */
export function importPublicKey(text: string): KeyObject {
  const bytes = decodeBase64url(text);
  if (bytes?.length !== KEY_BYTES) throw new Error("public_key must be base64url of exactly 32 bytes");
  if (isWeakPoint(bytes)) throw new Error("public_key is a small-order or non-canonical point");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: text }, format: "jwk" });
}

/** The private key of a 32-byte seed. Source: RFC 8032, section 5.1.5. */
export function privateKeyOfSeed(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
}

/** The public half of a private key: 32 bytes in base64url. */
export function publicKeyText(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ format: "jwk" }).x as string;
}

/** True for small order, in any encoding: a y at or above the prime is a second spelling of a smaller one. */
function isWeakPoint(bytes: Buffer): boolean {
  const y = BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`) & (2n ** 255n - 1n);
  return y >= FIELD_PRIME || SMALL_ORDER_Y.has(y);
}
