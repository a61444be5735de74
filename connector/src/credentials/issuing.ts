import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import { HEADER } from "./contract.ts";
import type { IssuerRecord } from "./issuer-record.ts";
import { thumbprintOf } from "./public-jwk.ts";
import { type Credential, readCredential } from "./read-credential.ts";

/** A key of an issuer, both halves in base64url. The private one stays with who issues, and lies on no server. */
export interface IssuerKeyPair {
  readonly issuer: string;
  readonly publicKey: string;
  readonly privateKey: string;
}

/** What a credential is to say. */
export interface CredentialRequest {
  readonly agent: string;
  /** Ed25519, base64url. */
  readonly publicKey: string;
  /** X25519, base64url: for payloads that are sealed to the agent. */
  readonly sealingKey?: string | undefined;
  /** The hosts of the relays that it is for; undefined = any. */
  readonly audience?: readonly string[] | undefined;
  /** How long it holds, from now on; at most 90. */
  readonly days: number;
}

const DAY_SECONDS = 86_400;

export async function newIssuerKey(issuer: string): Promise<IssuerKeyPair> {
  const { privateKey } = await generateKeyPair("Ed25519", { extractable: true });
  const { x = "", d = "" } = await exportJWK(privateKey);
  return { issuer, publicKey: x, privateKey: d };
}

/** What others pin of an issuer, or list in a relay's keys file. */
export function issuerRecord({ issuer, publicKey }: IssuerKeyPair, agents: readonly string[]): IssuerRecord {
  return { issuer, keys: [{ public_key: publicKey }], agents };
}

/**
 * A new credential. Rejects with a TypeError when it would be malformed: its agent or a key is invalid, its life is over 90
 * days, or it is longer than 2048 characters.
 * @param now epoch milliseconds.
 */
export async function issueCredential(
  { issuer, publicKey, privateKey }: IssuerKeyPair,
  { agent, publicKey: x, sealingKey, audience, days }: CredentialRequest,
  now = Date.now(),
): Promise<Credential> {
  const iat = Math.floor(now / 1000);
  const claims = {
    cnf: { jwk: { kty: "OKP", crv: "Ed25519", x } },
    ...(sealingKey !== undefined && { enc: { jwk: { kty: "OKP", crv: "X25519", x: sealingKey } } }),
    ...(audience !== undefined && { aud: [...audience] }),
  };
  const [alg] = HEADER.algorithms;
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg, typ: HEADER.typ, kid: await thumbprintOf(publicKey, "Ed25519") })
    .setIssuer(issuer)
    .setSubject(agent)
    .setIssuedAt(iat)
    .setExpirationTime(iat + Math.floor(days * DAY_SECONDS))
    .sign(await importJWK({ kty: "OKP", crv: "Ed25519", x: publicKey, d: privateKey }, alg));
  const credential = await readCredential(token);
  if (credential === undefined) throw new TypeError("no valid credential can say this");
  return credential;
}
