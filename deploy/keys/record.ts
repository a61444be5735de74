import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { IssuerRecord, SigningKeyRecord } from "protocol/contract/keys-file.ts";
import { parseJson } from "protocol/intake/parse-json.ts";
import { z } from "zod";

/** As `relay keygen` prints it. A listed key has no credential in which others could find a key to seal to. */
const MadeKeyRecord = z.preprocess(withoutSealingKey, SigningKeyRecord);

/**
 * Reads the record of a key that its agent made.
 * @param file `-` or undefined = standard input.
 * @throws {Error} that does not quote the record: that of an HMAC key holds the secret.
 */
export async function readRecord(file?: string): Promise<SigningKeyRecord> {
  return await read(file, MadeKeyRecord, "signing key");
}

/** Reads the public record of an issuer, in the same way. An issuer file, with its private key, is refused. */
export async function readIssuerRecord(file?: string): Promise<IssuerRecord> {
  return await read(file, IssuerRecord, "issuer");
}

async function read<T>(file = "-", schema: z.ZodType<T>, what: string): Promise<T> {
  const given = file === "-" ? await text(process.stdin) : await readFile(file, "utf8");
  if (given.trim() === "")
    throw new Error("No record was given: the command before the pipe, or of the file, made none.");
  const result = schema.safeParse(parsed(given));
  if (result.success) return result.data;
  throw new Error(`The record is not a valid ${what}.\n${z.prettifyError(result.error)}`);
}

function parsed(given: string): unknown {
  try {
    return parseJson(given);
  } catch {
    throw new Error("The record is not valid JSON.");
  }
}

function withoutSealingKey(record: unknown): unknown {
  if (typeof record !== "object" || record === null) return record;
  const { sealing_public_key: _, ...listed } = record as Record<string, unknown>;
  return listed;
}
