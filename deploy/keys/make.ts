import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import type { ApiKeyRecord, SigningKeyRecord } from "relay-protocol/contract/keys-file.ts";
import { generateApiKey, hashApiKey } from "relay-protocol/signing/api-key.ts";
import type { Curve } from "relay-protocol/signing/credentials.ts";

/** What every kind of key has. */
export interface KeyTerms {
  readonly id: string;
  /** Agent ids, or prefixes that end with `.*`. */
  readonly agents: string[];
  /** ISO 8601 with offset. */
  readonly expiresAt?: string | undefined;
}

/** A new key: the record that the relay keeps, and the secret that only the agent gets. */
interface NewApiKey {
  readonly record: ApiKeyRecord;
  /** The key's text, for the `x-api-key` header. */
  readonly apiKey: string;
}

interface NewEd25519Key {
  readonly record: SigningKeyRecord;
  /** base64url, the 32-byte seed. */
  readonly privateKey: string;
  /** The same key as PKCS#8 PEM. */
  readonly privateKeyPem: string;
}

interface NewHmacKey {
  readonly record: SigningKeyRecord;
  /** base64url, 32 bytes. The record holds it too: HMAC is verified with the same secret. */
  readonly secret: string;
}

/** Makes an API key; the record holds only its SHA-256. Source: docs/protocol.md#keys. */
export function makeApiKey(terms: KeyTerms): NewApiKey {
  const apiKey = generateApiKey();
  return { record: { id: terms.id, sha256: hashApiKey(apiKey), ...commonFields(terms) }, apiKey };
}

/** Makes an Ed25519 key; the record holds only its public half. Source: docs/protocol.md#keys. */
export function makeEd25519Key(terms: KeyTerms): NewEd25519Key {
  const { privateKey } = generateKeyPairSync("ed25519");
  const { x, d } = privateKey.export({ format: "jwk" });
  return {
    record: { key_id: terms.id, alg: "ed25519", public_key: String(x), ...commonFields(terms) },
    privateKey: String(d),
    privateKeyPem: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  };
}

/** Makes a key for HMAC-SHA256. Source: docs/protocol.md#keys. */
export function makeHmacKey(terms: KeyTerms): NewHmacKey {
  const secret = randomBytes(32).toString("base64url");
  return { record: { key_id: terms.id, alg: "hmac-sha256", secret, ...commonFields(terms) }, secret };
}

function commonFields(terms: KeyTerms): { agents: string[]; expires_at?: string } {
  return { agents: terms.agents, ...(terms.expiresAt !== undefined && { expires_at: terms.expiresAt }) };
}

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
