import { readFile, stat } from "node:fs/promises";
import { isAcceptFrom } from "../accept-from.ts";
import { AGENT_ID } from "../agent-id.ts";
import { type IssuerRecord, isIssuerRecord } from "../credentials/issuer-record.ts";
import { type Credential, readCredential } from "../credentials/read-credential.ts";
import { membersOf, textOf } from "../frames.ts";
import { importSigningKey } from "../keys.ts";
import type { SealingKeyPair } from "../sealing/sealing-keys.ts";
import type { AgentKey, CredentialWithKeys, JsonObject } from "../types.ts";
import { Failure } from "./failure.ts";
import { jsonOf, textIn } from "./files.ts";
import { okpKeyOf } from "./okp-keys.ts";
import { type SealingKeyList, sealingKeysOf } from "./sealing-key-list.ts";

/** The content of a key file, as `relay keygen` and `npm run keys` write it: one JSON object, mode 0600. */
export type KeyRecord = {
  readonly agent_id: string;
  /** Whom the agent accepts envelopes from; everyone where it is absent. */
  readonly accept_from?: readonly string[];
} & (
  | {
      readonly key_id: string;
      readonly alg: "ed25519";
      /** base64url, the 32-byte seed. */
      readonly private_key: string;
      /** X25519 keys that payloads are sealed to. base64url, the private 32 bytes. */
      readonly sealing_key?: SealingKeyList;
      /** A token. */
      readonly credential?: string;
      /** The issuers that the agent trusts, whatever the relay says. */
      readonly trusted_issuers?: readonly IssuerRecord[];
    }
  | {
      readonly key_id: string;
      readonly alg: "hmac-sha256" /** base64url, at least 32 bytes. */;
      readonly secret: string;
    }
);

/** An agent and what it acts with, as a connector takes it. */
export interface SigningAgent {
  readonly agent: string;
  readonly key: AgentKey;
  /** The present credential: a file is read again, so that one that replaced it counts. Undefined for a key that the relay lists. */
  readonly credential: (() => Promise<CredentialWithKeys>) | undefined;
  readonly sealingKeys: readonly SealingKeyPair[];
  /** The issuers that the file pins. */
  readonly trust: { readonly issuers: readonly IssuerRecord[] };
  readonly acceptFrom?: readonly string[] | undefined;
}

const INVALID = "invalid_key";
/** A file that this process was given open, such as the output of `<(command)`. */
const GIVEN = /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/;

/** @throws {Failure} `invalid_key`, or `invalid_credential`, with what is wrong with the file. */
export async function readKeyFile(file: string): Promise<SigningAgent> {
  const read = async () => await signingAgentOf(await readKeyRecord(file), `The key file ${file}`);
  const { credential, ...agent } = await read();
  return { ...agent, credential: credential && (async () => await presentIn(await read(), file)) };
}

/** What the file has by now: its keys may be others than before. @throws {Failure} `invalid_credential`. */
async function presentIn({ credential }: SigningAgent, file: string): Promise<CredentialWithKeys> {
  if (credential !== undefined) return await credential();
  throw mismatch(`The key file ${file} has no credential any more.`);
}

/** The members of the file, unchecked. @throws {Failure} `invalid_key`. */
export async function readKeyRecord(file: string): Promise<JsonObject> {
  const origin = `The key file ${file}`;
  const unreadable = (error: NodeJS.ErrnoException): never => {
    throw invalid(`${origin} cannot be read (${error.code}).`);
  };
  // Nobody may ever write to a named pipe, and nothing ends a read of one.
  const isReadable = GIVEN.test(file) || (await stat(file).catch(unreadable)).isFile();
  if (!isReadable) throw invalid(`${origin} is no regular file.`);
  const bytes = await readFile(file).catch(unreadable);
  return membersOf(jsonOf(textIn(bytes, origin, INVALID), () => invalid(`${origin} is not JSON.`)));
}

/**
 * @param origin what the record was read from, at the beginning of a sentence.
 * @throws {Failure} `invalid_key`, or `invalid_credential`.
 */
export async function signingAgentOf(record: JsonObject, origin: string): Promise<SigningAgent> {
  const { agent_id, alg, private_key, secret } = record;
  const agent = textOf(agent_id);
  if (agent === undefined || !AGENT_ID.test(agent))
    throw invalid(`${origin} has no valid agent_id, such as agent://alice.`);
  const credential = await credentialIn(record, agent, origin);
  const keyId = credential?.keyId ?? textOf(record.key_id);
  if (keyId === undefined) throw invalid(`${origin} has neither a credential nor a key_id.`);
  const key = keyOf(keyId, alg, textOf(private_key), textOf(secret));
  if (key === undefined) {
    throw invalid(`${origin} has neither alg "ed25519" with a private_key nor alg "hmac-sha256" with a secret.`);
  }
  await importSigningKey(key).catch(() => {
    throw invalid(`${origin} has a ${UNUSABLE[key.alg]}.`);
  });
  const sealingKeys = sealingKeysIn(record, origin);
  const trust = { issuers: trustedIssuersIn(record, origin) };
  const present = credential && { credential: credential.token, key, sealingKeys };
  const acceptFrom = acceptFromIn(record, origin);
  return { agent, key, credential: present && (async () => present), sealingKeys, trust, acceptFrom };
}

function keyOf(keyId: string, alg: unknown, privateKey?: string, secret?: string): AgentKey | undefined {
  if (alg === "ed25519" && privateKey !== undefined) return { keyId, alg, privateKey };
  if (alg === "hmac-sha256" && secret !== undefined) return { keyId, alg, secret };
  return undefined;
}

/** The member of a key that cannot be used, as the file has it. */
const UNUSABLE = {
  ed25519: "private_key that is not the 32 bytes of an Ed25519 seed, in base64url",
  "hmac-sha256": "secret that is not 32 bytes or more, in base64url",
} as const satisfies Record<AgentKey["alg"], string>;

/** The relay judges its term and its issuer. That it is of this agent and this key shows here. */
async function credentialIn(record: JsonObject, agent: string, origin: string): Promise<Credential | undefined> {
  if (record.credential === undefined) return undefined;
  const credential = await readCredential(record.credential);
  if (credential === undefined) throw mismatch(`${origin} has a credential that is none.`);
  if (credential.agent !== agent) throw mismatch(`${origin} has a credential for ${credential.agent}.`);
  if (credential.publicKey !== okpKeyOf("Ed25519", record.private_key)?.publicKey)
    throw mismatch(`${origin} has a credential for another key.`);
  return credential;
}

function sealingKeysIn({ sealing_key: given = [] }: JsonObject, origin: string): SealingKeyPair[] {
  const pairs = sealingKeysOf(given);
  if (pairs === undefined) throw invalid(`${origin} has a sealing_key that is none.`);
  return pairs;
}

function trustedIssuersIn({ trusted_issuers: given = [] }: JsonObject, origin: string): IssuerRecord[] {
  if (Array.isArray(given) && given.every(isIssuerRecord)) return given;
  throw invalid(`${origin} has trusted_issuers that are not records of issuers.`);
}

function acceptFromIn({ accept_from: given }: JsonObject, origin: string): readonly string[] | undefined {
  if (given === undefined || isAcceptFrom(given)) return given;
  throw invalid(
    `${origin} has an accept_from that is no list of at most 50 agent ids, agent://<prefix>.*, or issuer:<name>.`,
  );
}

function invalid(message: string): Failure {
  return new Failure(INVALID, message, "relay keygen --help shows what a key file looks like.");
}

function mismatch(message: string): Failure {
  return new Failure("invalid_credential", message, "Put the right one into the file: relay credential --help.");
}
