import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { exportJWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import type { IssuerRecord } from "../../src/contract/keys-file.ts";
import { readCredential, thumbprintOf } from "../../src/signing/credentials.ts";

/** Issuers and credentials of the tests; the tokens are made by another implementation than the one that reads them. */

/** Unix ms; whole seconds. */
export const NOW = 1_790_000_000_000;
const SECONDS = NOW / 1000;

interface Keys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public key, base64url. */
  readonly x: string;
  readonly thumbprint: string;
}

export function newKeys(curve: "ed25519" | "x25519" = "ed25519"): Keys {
  const pair = curve === "ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("x25519");
  const x = pair.publicKey.export({ format: "jwk" }).x as string;
  return { ...pair, x, thumbprint: thumbprintOf(x, curve === "ed25519" ? "Ed25519" : "X25519") };
}

export const ISSUER = newKeys();
export const AGENT = newKeys();

export const RECORD: IssuerRecord = {
  issuer: "acme",
  keys: [{ public_key: ISSUER.x }],
  agents: ["agent://acme.*"],
  revoked: [],
};

export const ISSUER_WITH_TERMS: IssuerRecord = {
  issuer: "globex",
  keys: [
    { public_key: newKeys().x, expires_at: "2027-01-01T00:00:00Z" },
    { public_key: newKeys().x, not_before: "2026-12-01T00:00:00Z" },
  ],
  agents: ["agent://globex.*", "agent://dora"],
  revoked: [{ agent: "agent://globex.bob", issued_before: "2026-09-01T00:00:00Z" }],
};

export const HEADER: JWTHeaderParameters = { alg: "Ed25519", typ: "relay-credential+jwt", kid: ISSUER.thumbprint };
export const CLAIMS = {
  iss: "acme",
  sub: "agent://acme.bob",
  cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: AGENT.x } },
  iat: SECONDS,
  exp: SECONDS + 3600,
};

/** A credential, issued with changes. */
export async function issued(claims: JWTPayload = {}, header: object = {}, issuer: Keys = ISSUER): Promise<string> {
  const jwt = new SignJWT({ ...CLAIMS, ...claims }).setProtectedHeader({ ...HEADER, ...header });
  return await jwt.sign(issuer.privateKey);
}

/** The token of texts that a careful issuer would not sign, with a valid signature. */
export function issuedAsWritten(header: string, claims: string, issuer: Keys = ISSUER): string {
  const signed = [header, claims].map((text) => Buffer.from(text).toString("base64url")).join(".");
  return `${signed}.${sign(null, Buffer.from(signed), issuer.privateKey).toString("base64url")}`;
}

export async function credential(claims: JWTPayload = {}) {
  const read = readCredential(await issued(claims));
  if (read === undefined) throw new Error("the credential is malformed");
  return read;
}

export async function publicJwk(keys: Keys) {
  return await exportJWK(keys.publicKey);
}
