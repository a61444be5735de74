import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { isAcceptFrom } from "../accept-from.ts";
import { AGENT_ID } from "../agent-id.ts";
import { decodeBase64url } from "../base64url.ts";
import { type IssuerRecord, isIssuerRecord } from "../credentials/issuer-record.ts";
import type { Curve } from "../credentials/public-jwk.ts";
import { type Credential, readCredential } from "../credentials/read-credential.ts";
import { membersOf, textOf } from "../frames.ts";
import { importSigningKey } from "../keys.ts";
import { CREDENTIAL_LIMITS, SEALING_KEY_KEPT_MS } from "../limits.ts";
import type { SealingKeyPair } from "../sealing/sealing-keys.ts";
import type { AgentKey, CredentialWithKeys, JsonObject } from "../types.ts";
import { Failure } from "./failure.ts";
import { jsonOf, permissionWarning, textIn } from "./files.ts";
import type { Io, Reporter } from "./io.ts";

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
  throw mismatch(`The key file ${file} no longer has a credential.`);
}

/** The members of the file, unchecked. @throws {Failure} `invalid_key`. */
export async function readKeyRecord(file: string): Promise<JsonObject> {
  const origin = `The key file ${file}`;
  const unreadable = (error: NodeJS.ErrnoException): never => {
    throw invalid(`${origin} cannot be read (${error.code}).`);
  };
  // Nobody may ever write to a named pipe, and nothing ends a read of one.
  const isReadable = GIVEN.test(file) || (await stat(file).catch(unreadable)).isFile();
  if (!isReadable) throw invalid(`${origin} is not a regular file.`);
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
  if (credential === undefined) throw mismatch(`${origin} has a member credential that is not a credential.`);
  if (credential.agent !== agent) throw mismatch(`${origin} has a credential for ${credential.agent}.`);
  if (credential.publicKey !== okpKeyOf("Ed25519", record.private_key)?.publicKey)
    throw mismatch(`${origin} has a credential for another key.`);
  return credential;
}

function sealingKeysIn({ sealing_key: given = [] }: JsonObject, origin: string): SealingKeyPair[] {
  const pairs = sealingKeysOf(given);
  if (pairs === undefined) throw invalid(`${origin} has a sealing_key that is not an X25519 key, or a list of them.`);
  return pairs;
}

function trustedIssuersIn({ trusted_issuers: given = [] }: JsonObject, origin: string): IssuerRecord[] {
  if (Array.isArray(given) && given.every(isIssuerRecord)) return given;
  throw invalid(`${origin} has trusted_issuers that are not records of issuers.`);
}

function acceptFromIn({ accept_from: given }: JsonObject, origin: string): readonly string[] | undefined {
  if (given === undefined || isAcceptFrom(given)) return given;
  throw invalid(
    `${origin} has an accept_from that is not a list of at most 50 agent ids, agent://<prefix>.* or issuer:<name>.`,
  );
}

function invalid(message: string): Failure {
  return new Failure(INVALID, message, "relay keygen makes a key file. CLI.md#key-file lists its members.");
}

function mismatch(message: string): Failure {
  return new Failure(
    "invalid_credential",
    message,
    "Put the credential of this key into the file with relay credential.",
  );
}

/** Who a command acts as. */
export interface Identity {
  readonly agent: string;
  /** Undefined when the environment names only the agent: enough to send with an API key. */
  readonly signing: SigningAgent | undefined;
}

/** Environment variables that hold secrets: the programs of `--exec` do not get them. */
export const SECRET_VARIABLES: readonly string[] = [
  "RELAY_PRIVATE_KEY",
  "RELAY_SECRET",
  "RELAY_API_KEY",
  "RELAY_MCP_TOKEN",
];

/**
 * The agent and its key: from the file of `--key` or RELAY_KEY_FILE, else from the environment alone.
 * @throws {Failure} `invalid_key`, `invalid_credential`.
 */
export async function readIdentity(
  keyOption: string | undefined,
  env: Io["env"],
  reporter: Reporter,
): Promise<Identity> {
  const file = keyFileOf(keyOption, env);
  if (file === undefined) return await fromEnvironment(env);
  const signing = await readKeyFile(file);
  const warning = await permissionWarning(file);
  if (warning !== undefined) reporter.warnOnce(warning);
  return { agent: signing.agent, signing };
}

/** Undefined where the environment alone says who acts. */
export function keyFileOf(keyOption: string | undefined, env: Io["env"]): string | undefined {
  return keyOption ?? (env.RELAY_KEY_FILE || undefined);
}

/** @throws {Failure} `invalid_key` when there is no key. */
export function requireKey({ signing }: Identity): SigningAgent {
  if (signing === undefined) throw noKey();
  return signing;
}

async function fromEnvironment(env: Io["env"]): Promise<Identity> {
  const { RELAY_AGENT: agent, RELAY_KEY_ID: key_id, RELAY_PRIVATE_KEY: private_key, RELAY_SECRET: secret } = env;
  if (!agent && env.RELAY_API_KEY) throw noAgent();
  if (!agent) throw noKey();
  if (!private_key && !secret) return { agent, signing: undefined };
  const alg = env.RELAY_KEY_ALG || (private_key ? "ed25519" : "hmac-sha256");
  const record = { agent_id: agent, key_id: key_id || undefined, alg, private_key, secret };
  return { agent, signing: await signingAgentOf(record, "The environment") };
}

function noKey(): Failure {
  return new Failure(
    "invalid_key",
    "The command needs a key, and none was given.",
    "Name a key file with --key or RELAY_KEY_FILE. Make one with: relay keygen --agent agent://<name>",
  );
}

function noAgent(): Failure {
  return new Failure(
    "invalid_key",
    "RELAY_API_KEY is set, but nothing names the agent to send as.",
    "Set RELAY_AGENT=agent://<name> to an agent that the API key may act for, or name a key file.",
  );
}

/** The member `sealing_key` of a key file: one key, or several, the newest first, former ones with their end (ISO 8601). */
type SealingKeyList = SealingKeyEntry | readonly SealingKeyEntry[];
type SealingKeyEntry = string | { readonly private_key: string; readonly until: string };

/** A credential, as far as its sealing key goes. */
interface SealedTo {
  readonly sealingKey: string | undefined;
  readonly expiresAt: number;
}

/** The keys of the member; undefined when one of them is none. */
function sealingKeysOf(given: unknown): SealingKeyPair[] | undefined {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const pairs = list.map(pairOf);
  return pairs.every((pair) => pair !== undefined) ? pairs : undefined;
}

/**
 * The member once a credential is replaced: keys behind that of the new one are former. Each opens until ten minutes after the end
 * of its last credential, or, where the file does not have that, of the longest that there may be; then it is dropped.
 */
export function rotated(
  pairs: readonly SealingKeyPair[],
  next: SealedTo,
  replaced: SealedTo | undefined,
  now: number,
): SealingKeyPair[] {
  const present = pairs.findIndex(({ publicKey }) => publicKey === next.sealingKey);
  if (present === -1) return [...pairs];
  const endOf = ({ publicKey }: SealingKeyPair) =>
    (publicKey === replaced?.sealingKey ? replaced.expiresAt : now + CREDENTIAL_LIMITS.maxLifeMs) + SEALING_KEY_KEPT_MS;
  const former = pairs.slice(present + 1).map((pair) => ({ ...pair, until: pair.until ?? endOf(pair) }));
  return [...pairs.slice(0, present + 1), ...former.filter(({ until }) => until > now)];
}

export function sealingKeyListOf(pairs: readonly SealingKeyPair[]): SealingKeyList {
  const entries = pairs.map(({ privateKey, until }) =>
    until === undefined ? privateKey : { private_key: privateKey, until: new Date(until).toISOString() },
  );
  return entries.length === 1 ? (entries[0] as SealingKeyEntry) : entries;
}

function pairOf(entry: unknown): SealingKeyPair | undefined {
  if (typeof entry !== "object" || entry === null) return okpKeyOf("X25519", entry);
  const { private_key, until } = entry as { readonly private_key?: unknown; readonly until?: unknown };
  const [pair, end] = [okpKeyOf("X25519", private_key), Date.parse(String(until))];
  return pair && Number.isFinite(end) ? { ...pair, until: end } : undefined;
}

/** Both halves of a key on one of the curves, 32 bytes each, in base64url. */
interface OkpKey {
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
