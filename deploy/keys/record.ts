import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { SigningKeyRecord } from "protocol/contract/keys-file.ts";
import { parseJson } from "protocol/intake/parse-json.ts";
import { z } from "zod";

/**
 * Reads the record of a key that its agent made.
 * @param file `-` or undefined = standard input.
 * @throws {Error} that does not quote the record: that of an HMAC key holds the secret.
 */
export async function readRecord(file = "-"): Promise<SigningKeyRecord> {
  const given = file === "-" ? await text(process.stdin) : await readFile(file, "utf8");
  if (given.trim() === "")
    throw new Error("No record was given: the command before the pipe, or of the file, made none.");
  const result = SigningKeyRecord.safeParse(parsed(given));
  if (result.success) return result.data;
  throw new Error(`The record is not a valid signing key.\n${z.prettifyError(result.error)}`);
}

function parsed(given: string): unknown {
  try {
    return parseJson(given);
  } catch {
    throw new Error("The record is not valid JSON.");
  }
}
