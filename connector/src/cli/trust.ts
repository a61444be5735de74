import type { IssuerRecord } from "../credentials/issuer-record.ts";
import { isIssuerRecord } from "../credentials/issuer-record.ts";
import { membersOf } from "../frames.ts";
import { GATEWAY_KEY_PREFIX } from "../gateway-keys.ts";
import type { TrustedKey } from "../types.ts";
import { Failure } from "./failure.ts";
import type { Input } from "./io.ts";
import { readRecords, trustedKeyOf } from "./records.ts";

/** Whom an agent believes without the relay's word. */
export interface Trust {
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
    "Each file contains one public record, as relay keygen and relay issuer new print them and gateway_keys of the signing manifest has them, or a list of them.",
  );
}
