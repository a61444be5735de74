import { decodeBase64url } from "./base64url.ts";
import { RelayError } from "./errors.ts";
import { isSmallOrderEd25519 } from "./small-order.ts";
import type { AgentKey, TrustedKey, WebCryptoKey } from "./types.ts";

/** Imports keys into WebCrypto. All functions reject with `invalid_key`, whose texts hold no key. */

const KEY_BYTES = 32;
const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

/** DER of a PKCS#8 Ed25519 private key, up to its seed. Source: RFC 8410, section 7. */
const PKCS8_PREFIX = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/** WebCrypto's names of the algorithms. */
export const ALGORITHMS = { ed25519: "Ed25519", "hmac-sha256": "HMAC" } as const;

export type Algorithm = keyof typeof ALGORITHMS;

/** A key that verifies signatures. */
export interface VerifyKey {
  readonly alg: Algorithm;
  readonly key: WebCryptoKey;
}

export async function importSigningKey(key: AgentKey): Promise<WebCryptoKey> {
  if (key.alg === "ed25519") {
    if (typeof key.privateKey !== "string") return key.privateKey;
    const der = pkcs8Of(key.privateKey);
    return await imported((subtle) => subtle.importKey("pkcs8", der, "Ed25519", false, ["sign"]));
  }
  if (typeof key.secret !== "string") return key.secret;
  const secret = secretOf(key.secret);
  return await imported((subtle) => subtle.importKey("raw", secret, HMAC, false, ["sign"]));
}

/** PKCS#8 of an Ed25519 seed in base64url. */
function pkcs8Of(seed: string): Uint8Array<ArrayBuffer> {
  const bytes = bytesOf(seed);
  if (bytes.length !== KEY_BYTES) throw new RelayError("invalid_key");
  return Uint8Array.from([...PKCS8_PREFIX, ...bytes]);
}

export async function importVerifyKey(trusted: TrustedKey): Promise<VerifyKey> {
  if (trusted.alg === "hmac-sha256") {
    const secret = secretOf(trusted.secret);
    return {
      alg: trusted.alg,
      key: await imported((subtle) => subtle.importKey("raw", secret, HMAC, false, ["verify"])),
    };
  }
  const point = bytesOf(trusted.publicKey);
  if (point.length !== KEY_BYTES || isSmallOrderEd25519(point)) throw new RelayError("invalid_key");
  return {
    alg: trusted.alg,
    key: await imported((subtle) => subtle.importKey("raw", point, "Ed25519", false, ["verify"])),
  };
}

function bytesOf(text: unknown): Uint8Array<ArrayBuffer> {
  const bytes = typeof text === "string" ? decodeBase64url(text) : undefined;
  if (bytes === undefined) throw new RelayError("invalid_key");
  return bytes;
}

function secretOf(text: unknown): Uint8Array<ArrayBuffer> {
  const bytes = bytesOf(text);
  if (bytes.length < KEY_BYTES) throw new RelayError("invalid_key");
  return bytes;
}

/** Browsers have `crypto.subtle` in secure contexts only. */
async function imported(importKey: (subtle: typeof crypto.subtle) => Promise<WebCryptoKey>): Promise<WebCryptoKey> {
  try {
    return await importKey(crypto.subtle);
  } catch {
    throw new RelayError("invalid_key");
  }
}
