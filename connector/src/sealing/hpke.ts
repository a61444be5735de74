import { AEAD_AES_128_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from "hpke";
import type { WebCryptoKey } from "../options.ts";

/** HPKE in base mode with the one suite of sealed payloads. Source: RFC 9180, sections 5.1.1, 6.1 and 7. */
const SUITE = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_128_GCM);

/** Bytes of an encapsulated key, and of what authenticates a ciphertext. */
export const HPKE_BYTES = { enc: 32, tag: 16 } as const;

export interface KeyPair {
  readonly publicKey: WebCryptoKey;
  readonly privateKey: WebCryptoKey;
}

/** What both sides must have alike. */
export interface Context {
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
}

export interface Ciphertext {
  /** The encapsulated key. */
  readonly enc: Uint8Array;
  readonly ct: Uint8Array;
}

/** @param publicKey of the recipient, 32 bytes. */
export async function sealBytes(publicKey: Uint8Array, plaintext: Uint8Array, context: Context): Promise<Ciphertext> {
  const key = await SUITE.DeserializePublicKey(publicKey);
  const { encapsulatedSecret: enc, ciphertext: ct } = await SUITE.Seal(key, plaintext, context);
  return { enc, ct };
}

/** Rejects when the ciphertext was not sealed to this key in this context. */
export async function openBytes(keys: KeyPair, { enc, ct }: Ciphertext, context: Context): Promise<Uint8Array> {
  return await SUITE.Open(keys, enc, ct, context);
}
