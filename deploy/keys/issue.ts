import type { IssuerRecord, KeysFile } from "relay-protocol/contract/keys-file.ts";
import { privateKeyOfSeed, signEd25519 } from "relay-protocol/signing/algorithms.ts";
import { readCredential, thumbprintOf } from "relay-protocol/signing/credentials.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import {
  ANY_AGENT,
  CREDENTIAL_HEADER,
  CREDENTIAL_KEY_PREFIX,
  CREDENTIAL_REASONS,
} from "relay-protocol/wire/credential.ts";
import type { IssuerFile } from "./issuers.ts";
import { issuerNamed } from "./issuers.ts";
import { newOkpKey, type OkpKey } from "./make.ts";

/** An agent's key file: its private keys, its credential, and the issuers that it trusts without the relay's word. */
export interface AgentKeyFile {
  readonly agent_id: string;
  readonly key_id: string;
  readonly alg: "ed25519";
  /** base64url, the 32-byte seed. */
  readonly private_key: string;
  readonly credential: string;
  /** base64url, the 32 bytes of the X25519 key that sealed payloads are opened with. */
  readonly sealing_key: string;
  readonly trusted_issuers: readonly IssuerRecord[];
}

/** What an agent signs with, and what payloads are sealed to. */
export interface AgentKeys {
  readonly signing: OkpKey;
  readonly sealing: OkpKey;
}

/** What a credential is to say. */
export interface CredentialTerms {
  readonly agent: string;
  readonly days: number;
}

/** What a credential says. Source: docs/protocol.md#credentials. */
export interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly cnf: { readonly jwk: OkpKey["publicJwk"] };
  readonly enc?: { readonly jwk: OkpKey["publicJwk"] };
  /** In seconds. */
  readonly iat: number;
  readonly exp: number;
}

const DAY_SECONDS = 86_400;

export function newAgentKeys(): AgentKeys {
  return { signing: newOkpKey("Ed25519"), sealing: newOkpKey("X25519") };
}

/**
 * An agent's key file, with a credential that holds from now on. Source: docs/protocol.md#credentials.
 * @param now Unix ms.
 * @throws {Error} when a relay with this keys file would not accept the credential.
 */
export function issue(
  issuer: IssuerFile,
  keys: KeysFile,
  { agent, days }: CredentialTerms,
  { signing, sealing }: AgentKeys,
  now: number,
) {
  const record = issuerNamed(keys.issuers, issuer.issuer);
  const iat = Math.ceil(Math.max(Math.floor(now / 1000) * 1000, ...revocationsOf(record, agent)) / 1000);
  const token = signed(issuer, {
    iss: issuer.issuer,
    sub: agent,
    cnf: { jwk: signing.publicJwk },
    enc: { jwk: sealing.publicJwk },
    iat,
    exp: iat + days * DAY_SECONDS,
  });
  const until = acceptedUntil(token, keys, now);
  const keyFile: AgentKeyFile = {
    agent_id: agent,
    key_id: `${CREDENTIAL_KEY_PREFIX}${thumbprintOf(signing.publicJwk.x, "Ed25519")}`,
    alg: "ed25519",
    private_key: signing.privateKey,
    credential: token,
    sealing_key: sealing.privateKey,
    trusted_issuers: [namedAgentsOf(record)],
  };
  return { keyFile, until };
}

/** A new credential is never older than a revocation, be it of this very second. Unix ms. */
function revocationsOf({ revoked }: IssuerRecord, agent: string): number[] {
  const entries = revoked.filter((entry) => entry.agent === agent || entry.agent === ANY_AGENT);
  return entries.map(({ issued_before }) => Date.parse(issued_before));
}

/** A JWT in compact form, but for its signature. Source: RFC 7515, section 3.1. @param publicKey of the issuer. */
export function unsignedToken(publicKey: string, claims: Claims): string {
  const [alg] = CREDENTIAL_HEADER.algorithms;
  const header = { alg, typ: CREDENTIAL_HEADER.typ, kid: thumbprintOf(publicKey, "Ed25519") };
  return [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
}

function signed({ private_key, public_key }: IssuerFile, claims: Claims): string {
  const text = unsignedToken(public_key, claims);
  const privateKey = privateKeyOfSeed(Buffer.from(private_key, "base64url"));
  return `${text}.${signEd25519(privateKey, Buffer.from(text)).toString("base64url")}`;
}

/** Unix ms at which the credential ends, as a relay judges it. @throws {Error} that says why a relay would refuse it. */
function acceptedUntil(token: string, keys: KeysFile, now: number): number {
  const { issuers } = KeyRing.from(keys);
  const credential = readCredential(token);
  const problem = credential === undefined ? "malformed" : issuers.problemOf(credential, now);
  if (credential === undefined || problem !== undefined) {
    throw new Error(`The relay would refuse this credential: ${CREDENTIAL_REASONS[problem ?? "malformed"].means}.
list shows the issuers and their agents; those of listed keys are none of an issuer's.`);
  }
  return issuers.endOf(credential);
}

/**
 * For recipients, without `*`: whoever pins that accepts no reply of an agent that the relay lists. Only where it stands alone it
 * stays.
 */
function namedAgentsOf(record: IssuerRecord): IssuerRecord {
  const agents = record.agents.filter((pattern) => pattern !== ANY_AGENT);
  return agents.length === 0 ? record : { ...record, agents };
}
