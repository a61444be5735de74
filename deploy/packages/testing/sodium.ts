import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { isSmallOrderEd25519 } from "relay-protocol/signing/algorithms.ts";

/**
 * Stands in for sodium-native in what is bundled, which so has no machine code: the functions that
 * `relay-protocol/signing/algorithms.ts` uses, over Node's own Ed25519. A test holds the answers to libsodium's.
 */

/** DER of a PKCS#8 private key and of a public key, up to their 32 bytes. Source: RFC 8410, sections 4 and 7. */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

const privateKeyOf = (seed: Buffer) =>
  createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
const publicKeyOf = (point: Buffer) =>
  createPublicKey({ key: Buffer.concat([SPKI_PREFIX, point]), format: "der", type: "spki" });

export default {
  crypto_sign_PUBLICKEYBYTES: KEY_BYTES,
  crypto_sign_SEEDBYTES: KEY_BYTES,
  crypto_sign_SECRETKEYBYTES: 2 * KEY_BYTES,
  crypto_sign_BYTES: SIGNATURE_BYTES,

  crypto_sign_seed_keypair(publicKey: Buffer, privateKey: Buffer, seed: Buffer): void {
    const { x } = createPublicKey(privateKeyOf(seed)).export({ format: "jwk" });
    publicKey.write(String(x), "base64url");
    seed.copy(privateKey);
    publicKey.copy(privateKey, KEY_BYTES);
  },

  crypto_sign_detached(signature: Buffer, message: Buffer, privateKey: Buffer): void {
    sign(null, message, privateKeyOf(privateKey.subarray(0, KEY_BYTES))).copy(signature);
  },

  /** Refuses points of small order, as libsodium does and not every OpenSSL: one signature would fit many messages or keys. */
  crypto_sign_verify_detached(signature: Buffer, message: Buffer, publicKey: Buffer): boolean {
    const r = signature.subarray(0, KEY_BYTES);
    if (isSmallOrderEd25519(publicKey) || isSmallOrderEd25519(r)) return false;
    return verify(null, message, publicKeyOf(publicKey), signature);
  },
};
