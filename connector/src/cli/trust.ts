import type { IssuerRecord } from "../credentials/issuer-record.ts";
import { isIssuerRecord } from "../credentials/issuer-record.ts";
import { membersOf } from "../frames.ts";
import type { TrustedKey } from "../types.ts";
import { Failure } from "./failure.ts";
import type { Io } from "./io.ts";
import { readRecords, trustedKeyOf } from "./records.ts";

/** Whom an agent believes without the relay's word. */
export interface Trust {
  /** By agent id. */
  readonly keys: Readonly<Record<string, readonly TrustedKey[]>>;
  readonly issuers: readonly IssuerRecord[];
}

/**
 * Reads public records of keys and of issuers.
 * @param pinned the issuers of the agent's key file; a record of `--trust` counts in place of one of the same name.
 * @throws {Failure} `invalid_key`.
 */
export async function readTrust(
  files: readonly string[],
  pinned: readonly IssuerRecord[],
  io: Pick<Io, "stdin">,
): Promise<Trust> {
  const keys = new Map<string, TrustedKey[]>();
  const issuers = new Map(pinned.map((record) => [record.issuer, record]));
  for (const file of files) {
    for (const record of await readRecords(file, io)) {
      if (isIssuerRecord(record)) issuers.set(record.issuer, record);
      else addKey(record, keys);
    }
  }
  return { keys: Object.fromEntries(keys), issuers: [...issuers.values()] };
}

function addKey(record: unknown, keys: Map<string, TrustedKey[]>): void {
  const { agents } = membersOf(record);
  const key = trustedKeyOf(record);
  if (key === undefined || !Array.isArray(agents)) throw invalid();
  for (const agent of agents.map(String)) keys.set(agent, [...(keys.get(agent) ?? []), key]);
}

function invalid(): Failure {
  return new Failure(
    "invalid_key",
    "A file of --trust contains an invalid record.",
    "Each file contains one public record, as relay keygen and relay issuer new print them, or a list of them.",
  );
}
