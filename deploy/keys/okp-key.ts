import { generateKeyPairSync } from "node:crypto";
import type { Curve } from "protocol/credentials/public-jwk.ts";

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
