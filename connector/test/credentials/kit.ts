import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { sessionIdOf } from "relay-window/acceptance/acceptance.ts";
import { canonical, signed } from "../../../test/support/agent.ts";
import type { IssuerRecord } from "../../src/credentials/issuer-record.ts";
import { type Credential, readCredential } from "../../src/credentials/read-credential.ts";
import type { Envelope } from "../../src/types.ts";

/** Issuers, agents, tokens and envelopes, made by another implementation than the one that reads them. */

/** Epoch milliseconds; whole seconds. */
export const NOW = 1_790_000_000_000;
export const SECONDS = NOW / 1000;

export interface Keys {
  readonly privateKey: KeyObject;
  /** Public and private, base64url. */
  readonly x: string;
  readonly d: string;
  readonly thumbprint: string;
}

export async function newKeys(curve: "Ed25519" | "X25519" = "Ed25519"): Promise<Keys> {
  const { privateKey } = curve === "Ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("x25519");
  const { x = "", d = "" } = privateKey.export({ format: "jwk" });
  return { privateKey, x, d, thumbprint: await calculateJwkThumbprint({ kty: "OKP", crv: curve, x }) };
}

export const ISSUER = await newKeys();
export const BOB = await newKeys();

export const RECORD: IssuerRecord = { issuer: "acme", keys: [{ public_key: ISSUER.x }], agents: ["agent://acme.*"] };
export const HEADER = { alg: "Ed25519", typ: "relay-credential+jwt", kid: ISSUER.thumbprint };
export const CLAIMS = {
  iss: "acme",
  sub: "agent://acme.bob",
  cnf: { jwk: { kty: "OKP", crv: "Ed25519", x: BOB.x } },
  iat: SECONDS,
  exp: SECONDS + 3600,
};

/** The token of any two texts, with a valid signature. */
export function tokenOf(header: string, claims: string, issuer: Keys = ISSUER): string {
  const text = [header, claims].map((part) => Buffer.from(part).toString("base64url")).join(".");
  return `${text}.${sign(null, Buffer.from(text), issuer.privateKey).toString("base64url")}`;
}

/** A credential, issued with changes. */
export function issued(claims: object = {}, header: object = {}, issuer: Keys = ISSUER): string {
  return tokenOf(JSON.stringify({ ...HEADER, ...header }), JSON.stringify({ ...CLAIMS, ...claims }), issuer);
}

export async function credential(claims: object = {}, header: object = {}, issuer: Keys = ISSUER): Promise<Credential> {
  const read = await readCredential(issued(claims, header, issuer));
  if (read === undefined) throw new Error("the credential is malformed");
  return read;
}

/** An envelope that the keys sign. */
export function envelopeOf(keys: Keys, fields: Partial<Envelope> = {}, keyId = `jkt-${keys.thumbprint}`): Envelope {
  const key = {
    keyId,
    sign: (text: string) => sign(null, Buffer.from(text), keys.privateKey).toString("base64url"),
  };
  return signed(key, { type: "message.send", from: "agent://acme.bob", to: "agent://alice", ts: NOW, ...fields });
}

/** The id that the relay gives to the session of a request. */
export function sessionOf({ sig, ...request }: Envelope): string {
  return sessionIdOf(`${canonical(request).slice(0, -1)},"sig":"${sig}"}`, 0);
}

/** Another last character, whose unused bits are not zero: a second spelling of the same bytes. */
export function secondSpelling(text: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? "") + 1];
}
