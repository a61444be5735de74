import { AgentHolders } from "../credentials/agent-holders.ts";
import { type CredentialReason, ISSUER } from "../credentials/contract.ts";
import { type IssuerRecord, isIssuerRecord } from "../credentials/issuer-record.ts";
import type { IssuerKeyPair } from "../credentials/issuing.ts";
import { type Credential, readCredential } from "../credentials/read-credential.ts";
import { membersOf, textOf } from "../frames.ts";
import { GATEWAY_KEY_PREFIX } from "../gateway-keys.ts";
import { parseJson } from "../parse-json.ts";
import type { TrustedKey } from "../types.ts";
import { Failure, usageError } from "./failure.ts";
import { jsonOf, readText, writePrivateFile } from "./files.ts";
import type { Input, Options } from "./io.ts";
import { okpKeyOf, readKeyFile } from "./key-file.ts";

/** Public records in files: of keys, as `relay keygen` prints them, and of issuers, as `relay issuer new` does. */

/** What `relay issue` needs of a key's record. */
interface PublicKeys {
  /** Ed25519, base64url. */
  readonly publicKey: string;
  /** X25519, base64url. */
  readonly sealingKey: string | undefined;
  /** The agents that its owner made it for. */
  readonly agents: readonly unknown[];
}

/** The records of a file: one, a list, or the member `issuers` of a relay's signing manifest or keys file. @throws {Failure} */
async function readRecords(file: string, io: Input): Promise<readonly unknown[]> {
  const value = jsonOf(await readText(file, io), () => usageError(`${file} is not JSON.`));
  if (Array.isArray(value)) return value;
  const { issuers } = membersOf(value);
  return Array.isArray(issuers) ? issuers : [value];
}

/** Of issuers, and of nothing else. @throws {Failure} */
async function readIssuerRecords(files: readonly string[], io: Input): Promise<IssuerRecord[]> {
  const records: IssuerRecord[] = [];
  for (const file of files) {
    for (const record of await readRecords(file, io)) {
      if (!isIssuerRecord(record)) throw notOfIssuers(file, record);
      records.push(record);
    }
  }
  return records;
}

/** The record of a key that is to have a credential. @throws {Failure} */
export async function readPublicKeys(file: string, io: Input): Promise<PublicKeys> {
  const [record, ...more] = await readRecords(file, io);
  const { alg, public_key, sealing_public_key: sealingKey, agents = [] } = membersOf(record);
  const isKey = alg === "ed25519" && typeof public_key === "string" && Array.isArray(agents) && more.length === 0;
  if (!isKey || (sealingKey !== undefined && typeof sealingKey !== "string")) {
    throw usageError(
      `${file} is not the public record of one Ed25519 key.`,
      "Give the record that relay keygen printed.",
    );
  }
  return { publicKey: public_key, sealingKey, agents };
}

/** What the record of a key is checked with; undefined for any other value. */
function trustedKeyOf(record: unknown): TrustedKey | undefined {
  const { key_id: keyId, alg, public_key: publicKey, secret } = membersOf(record);
  if (typeof keyId !== "string") return undefined;
  if (alg === "ed25519" && typeof publicKey === "string") return { keyId, alg, publicKey };
  if (alg === "hmac-sha256" && typeof secret === "string") return { keyId, alg, secret };
  return undefined;
}

function notOfIssuers(file: string, record: unknown): Failure {
  if (membersOf(record).private_key === undefined)
    return usageError(
      `${file} holds something other than records of issuers.`,
      "relay issuer new prints such a record.",
    );
  return usageError(
    `${file} holds a private key.`,
    "Give the public record that relay issuer new printed. Give a key file with --key: its trusted_issuers count.",
  );
}

/** An issuer with its private key, in the form that `npm run keys -- new-issuer` writes too. */
interface IssuerFile {
  readonly issuer: string;
  readonly alg: "ed25519";
  /** base64url, the 32-byte seed. */
  readonly private_key: string;
  readonly public_key: string;
  /** Those that it speaks for; earlier versions wrote none. */
  readonly agents?: readonly string[];
}

/** An issuer that signs. */
export interface SigningIssuer extends IssuerKeyPair {
  /** Undefined where its file does not say. */
  readonly agents: readonly string[] | undefined;
}

export async function writeIssuerFile(
  file: string,
  { issuer, privateKey, publicKey }: IssuerKeyPair,
  agents: readonly string[],
): Promise<void> {
  const content: IssuerFile = { issuer, alg: "ed25519", private_key: privateKey, public_key: publicKey, agents };
  await writePrivateFile(file, content);
}

/** Whether patterns of agents include one. */
export function speakFor(agents: readonly string[], agent: string): boolean {
  return new AgentHolders([{ issuer: "it", keys: [], agents }]).holderOf(agent) !== undefined;
}

/** @throws {Failure} `invalid_key`, which shows nothing of the file. */
export async function readIssuerFile(file: string, io: Input): Promise<SigningIssuer> {
  const members = membersOf(jsonOf(await readText(file, io), () => noIssuer(file)));
  const issuer = textOf(members.issuer);
  const key = okpKeyOf("Ed25519", members.private_key);
  const isWhole = members.alg === "ed25519" && key !== undefined && key.publicKey === members.public_key;
  if (issuer === undefined || !ISSUER.test(issuer) || !isWhole) throw noIssuer(file);
  const agents = Array.isArray(members.agents) ? members.agents.map(String) : undefined;
  return { issuer, ...key, agents };
}

function noIssuer(file: string): Failure {
  return new Failure(
    "invalid_key",
    `${file} is not the private file of an issuer.`,
    "relay issuer new writes the private file, <name>.issuer.json. It prints the public record, which cannot sign.",
  );
}

/** Whom an agent believes without the relay's word. */
interface Trust {
  /** By agent id. */
  readonly keys: Readonly<Record<string, readonly TrustedKey[]>>;
  readonly issuers: readonly IssuerRecord[];
  /** Ids of gateway keys. */
  readonly gateways: readonly string[];
}

/**
 * Reads public records of keys, of issuers and of gateways.
 * @param pinned the issuers of the agent's key file; a record of `--trust` counts in place of one of the same name.
 * @throws {Failure} `invalid_key`.
 */
export async function readTrust(files: readonly string[], pinned: readonly IssuerRecord[], io: Input): Promise<Trust> {
  const keys = new Map<string, TrustedKey[]>();
  const issuers = new Map(pinned.map((record) => [record.issuer, record]));
  const gateways: string[] = [];
  for (const file of files) {
    for (const record of await readRecords(file, io)) {
      if (isIssuerRecord(record)) issuers.set(record.issuer, record);
      else {
        const key = trustedKeyOf(record);
        if (key?.keyId.startsWith(GATEWAY_KEY_PREFIX)) gateways.push(key.keyId);
        else addKey(key, membersOf(record).agents, keys);
      }
    }
  }
  return { keys: Object.fromEntries(keys), issuers: [...issuers.values()], gateways };
}

function addKey(key: TrustedKey | undefined, agents: unknown, keys: Map<string, TrustedKey[]>): void {
  if (key === undefined || !Array.isArray(agents)) throw invalid();
  for (const agent of agents.map(String)) keys.set(agent, [...(keys.get(agent) ?? []), key]);
}

function invalid(): Failure {
  return new Failure(
    "invalid_key",
    "A file of --trust contains an invalid record.",
    "Each file holds one public record or a list of them. relay keygen and relay issuer new print such records, and gateway_keys of the signing manifest has them.",
  );
}

/** The options that say whom an offline command believes. */
export const BELIEVED = {
  issuer: { type: "string", value: "FILE", multiple: true, help: "an issuer's public record; may be repeated" },
  key: { type: "string", value: "FILE", help: "a key file, whose trusted_issuers count" },
} as const satisfies Options;

/**
 * The issuers that a command is to believe: those of public records, and those that a key file pins; of two of one name the
 * record's. Undefined when neither was named.
 * @throws {Failure}
 */
export async function readBelieved(
  { issuer: files, key }: { readonly issuer?: readonly string[]; readonly key?: string },
  io: Input,
): Promise<IssuerRecord[] | undefined> {
  if (files === undefined && key === undefined) return undefined;
  const named = await readIssuerRecords(files ?? [], io);
  const pinned = key === undefined ? [] : (await readKeyFile(key)).trust.issuers;
  return [...named, ...pinned.filter(({ issuer }) => named.every((record) => record.issuer !== issuer))];
}

/** A JWT in compact form; no name of a file is one by chance. */
const TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]+$/;

/**
 * The credential that a word of the command line is, or that the file of this name holds: alone, or as the member
 * `credential` of a JSON object, such as a key file or an answer of the relay.
 * @throws {Failure} `usage`, `invalid_credential`.
 */
export async function readToken(word: string, io: Input): Promise<Credential> {
  const credential = await readCredential(TOKEN.test(word) ? word : tokenIn(await readText(word, io)));
  if (credential !== undefined) return credential;
  throw new Failure(
    "invalid_credential",
    "This is not a credential (malformed).",
    "Give the line that relay issue printed, or a file that holds it.",
  );
}

function tokenIn(text: string): unknown {
  try {
    return membersOf(parseJson(text)).credential;
  } catch {
    return text.trim();
  }
}

/** Why a credential vouches for nothing, in words. */
export const CREDENTIAL_REASONS: Readonly<Record<CredentialReason, string>> = {
  unknown_issuer: "no issuer that was named has the key that it is signed with",
  signature: "its signature does not match the key of its issuer",
  expired: "its term, or that of its issuer's key, is over",
  not_yet_valid: "its term, or that of its issuer's key, has not begun",
  revoked: "its issuer revoked what it had issued by then",
  agent_not_allowed: "its issuer does not speak for its agent",
  key_mismatch: "it is for another key",
  wrong_relay: "it is for another relay",
};
