import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { decodeBase64url } from "../base64url.ts";
import type { Curve } from "../credentials/public-jwk.ts";

/** Both halves of a key on one of the curves, 32 bytes each, in base64url. */
export interface OkpKey {
  readonly publicKey: string;
  readonly privateKey: string;
}

/** DER of a PKCS#8 private key, up to its 32 bytes. Source: RFC 8410, section 7. */
const PKCS8_PREFIXES: Readonly<Record<Curve, string>> = {
  Ed25519: "302e020100300506032b657004220420",
  X25519: "302e020100300506032b656e04220420",
};
const KEY_BYTES = 32;

export function newOkpKey(curve: Curve): OkpKey {
  const { privateKey } = curve === "Ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("x25519");
  const { x = "", d = "" } = privateKey.export({ format: "jwk" });
  return { publicKey: x, privateKey: d };
}

/** The key whose private half a file holds; undefined for what is not 32 bytes in base64url. */
export function okpKeyOf(curve: Curve, privateKey: unknown): OkpKey | undefined {
  const bytes = typeof privateKey === "string" ? decodeBase64url(privateKey) : undefined;
  if (bytes?.length !== KEY_BYTES) return undefined;
  const der = Buffer.concat([Buffer.from(PKCS8_PREFIXES[curve], "hex"), bytes]);
  const { x = "" } = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" })).export({
    format: "jwk",
  });
  return { publicKey: x, privateKey: privateKey as string };
}
