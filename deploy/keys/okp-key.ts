import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import type { Curve } from "relay-protocol/signing/credentials.ts";

export interface OkpKey {
  /** base64url, 32 bytes. */
  readonly privateKey: string;
  /** Source: RFC 8037, section 2. */
  readonly publicJwk: { readonly kty: "OKP"; readonly crv: Curve; readonly x: string };
}

export function newOkpKey(crv: Curve): OkpKey {
  const { privateKey } = crv === "Ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("x25519");
  const { x, d } = privateKey.export({ format: "jwk" });
  return { privateKey: String(d), publicJwk: { kty: "OKP", crv, x: String(x) } };
}

/** DER of a PKCS#8 private key, up to its 32 bytes. Source: RFC 8410, section 7. */
const PKCS8_PREFIXES: Readonly<Record<Curve, string>> = {
  Ed25519: "302e020100300506032b657004220420",
  X25519: "302e020100300506032b656e04220420",
};

/** The key whose private half is known. @param privateKey base64url, 32 bytes. */
export function okpKeyOf(crv: Curve, privateKey: string): OkpKey {
  const der = Buffer.concat([Buffer.from(PKCS8_PREFIXES[crv], "hex"), Buffer.from(privateKey, "base64url")]);
  const { x } = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" })).export({ format: "jwk" });
  return { privateKey, publicJwk: { kty: "OKP", crv, x: String(x) } };
}
