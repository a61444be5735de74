import type { IssuerRecord } from "../credentials/issuer-record.ts";
import type { Input } from "./io.ts";
import { readKeyFile } from "./key-file.ts";
import { readIssuerRecords } from "./records.ts";

/** The options that say whom an offline command believes. */
export const BELIEVED = { issuer: { type: "string", multiple: true }, key: { type: "string" } } as const;

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
