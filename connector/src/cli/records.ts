import { type IssuerRecord, isIssuerRecord } from "../credentials/issuer-record.ts";
import { membersOf } from "../frames.ts";
import type { TrustedKey } from "../types.ts";
import { type Failure, usageError } from "./failure.ts";
import { jsonOf, readText } from "./files.ts";
import type { Input } from "./io.ts";

/** Public records in files: of keys, as `relay keygen` prints them, and of issuers, as `relay issuer new` does. */

/** What `relay issue` needs of a key's record. */
export interface PublicKeys {
  /** Ed25519, base64url. */
  readonly publicKey: string;
  /** X25519, base64url. */
  readonly sealingKey: string | undefined;
  /** The agents that its owner made it for. */
  readonly agents: readonly unknown[];
}

/** The records of a file: one, a list, or the member `issuers` of a relay's signing manifest or keys file. @throws {Failure} */
export async function readRecords(file: string, io: Input): Promise<readonly unknown[]> {
  const value = jsonOf(await readText(file, io), () => usageError(`${file} is not JSON.`));
  if (Array.isArray(value)) return value;
  const { issuers } = membersOf(value);
  return Array.isArray(issuers) ? issuers : [value];
}

/** Of issuers, and of nothing else. @throws {Failure} */
export async function readIssuerRecords(files: readonly string[], io: Input): Promise<IssuerRecord[]> {
  const records: IssuerRecord[] = [];
  for (const file of files) {
    for (const record of await readRecords(file, io)) {
      if (!isIssuerRecord(record)) throw noIssuer(file, record);
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
    throw usageError(`${file} is not the public record of one Ed25519 key.`, "relay keygen prints it.");
  }
  return { publicKey: public_key, sealingKey, agents };
}

/** What the record of a key is checked with; undefined for any other value. */
export function trustedKeyOf(record: unknown): TrustedKey | undefined {
  const { key_id: keyId, alg, public_key: publicKey, secret } = membersOf(record);
  if (typeof keyId !== "string") return undefined;
  if (alg === "ed25519" && typeof publicKey === "string") return { keyId, alg, publicKey };
  if (alg === "hmac-sha256" && typeof secret === "string") return { keyId, alg, secret };
  return undefined;
}

function noIssuer(file: string, record: unknown): Failure {
  if (membersOf(record).private_key === undefined)
    return usageError(`${file} holds something else than records of issuers.`, "relay issuer new prints one.");
  return usageError(
    `${file} is private.`,
    "Give the public record of the issuer, as relay issuer new printed it; or an agent's key file, for its trusted_issuers, with --key.",
  );
}
