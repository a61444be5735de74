import { IssuerRecord, SigningKeyRecord } from "relay-protocol/contract/keys-file.ts";
import { decodeBase64url, ED25519_BYTES, isSmallOrderEd25519 } from "relay-protocol/signing/algorithms.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { z } from "zod";
import { fieldProblems } from "./field-problems.ts";

/** What a command was given. */
export interface Given {
  readonly text: string;
  /** Undefined for standard input. */
  readonly file?: string;
}

const KEYGEN_RECORD =
  'Give the record as relay keygen prints it: {"key_id":"bob-1","alg":"ed25519","public_key":"<43 characters>","agents":["agent://bob"]}';
const ISSUER_RECORD =
  'Give the record as relay issuer new prints it: {"issuer":"acme","keys":[{"public_key":"<43 characters>"}],"agents":["agent://acme.*"]}';

/** As `relay keygen` prints it. A listed key has no credential in which others could find a key to seal to. */
const MadeKeyRecord = z.preprocess(
  withoutSealingKey,
  SigningKeyRecord.refine((record) => record.alg !== "ed25519" || isUsable(record.public_key), unusable("public_key")),
);

const MadeIssuerRecord = IssuerRecord.refine(
  ({ keys }) => keys.every((key) => isUsable(key.public_key)),
  unusable("keys"),
);

/**
 * Reads the record of a key that its agent made.
 * @param file whose text it is, for the error.
 * @throws {Error} that does not quote the record: that of an HMAC key holds the secret.
 */
export function readRecord(text: string, file?: string): SigningKeyRecord {
  return read(text, file, MadeKeyRecord, "signing key", KEYGEN_RECORD);
}

/** Reads the public record of an issuer, in the same way. An issuer file, with its private key, is refused. */
export function readIssuerRecord(text: string, file?: string): IssuerRecord {
  return read(text, file, MadeIssuerRecord, "issuer", ISSUER_RECORD);
}

/** @param hint how the record is written. */
function read<T>(given: string, file = "Standard input", schema: z.ZodType<T>, what: string, hint: string): T {
  if (given.trim() === "")
    throw new Error(`${file}: No record was given: the command before the pipe, or of the file, made none.`);
  const value = parsed(given);
  if (value === undefined) throw new Error(`${file}: The record is not valid JSON.\n${hint}`);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const other = otherFile(value, what);
  if (other !== undefined) throw new Error(`${file}: This is ${other}`);
  throw new Error(`${file}: The record is not a valid ${what}.\n${fieldProblems(value, result.error)}\n${hint}`);
}

/** Undefined for what is not JSON. */
function parsed(given: string): unknown {
  try {
    return parseJson(given);
  } catch {
    return undefined;
  }
}

/** What was given instead of what was wanted, and where it belongs; undefined for what is none of the files that commands write. */
function otherFile(value: unknown, what: string): string | undefined {
  const has = (...members: readonly string[]) =>
    typeof value === "object" && value !== null && members.every((member) => Object.hasOwn(value, member));
  if (has("issuer", "private_key"))
    return "the private file of an issuer: keep it away from the relay. Its public record, which relay issuer new printed, goes to npm run keys -- add-issuer.";
  if (has("agent_id", "private_key") || has("agent_id", "secret"))
    return "an agent's key file, with its private key: it stays with the agent. Its public record, which relay keygen printed, goes to npm run keys -- add.";
  if (has("issuer", "keys") && what !== "issuer")
    return "the public record of an issuer: npm run keys -- add-issuer takes it.";
  if (has("key_id", "agents") && what === "issuer")
    return "the record of an agent's key: npm run keys -- add takes it, or an issuer signs for it with relay issue.";
  return undefined;
}

function unusable(member: string) {
  return {
    path: [member],
    error: "must be a key that somebody made: under this one, signatures of anybody would hold",
  };
}

/** Not so of points of small order, such as 32 bytes of zero. What is no key at all is told by the schema. */
function isUsable(publicKey: string): boolean {
  const bytes = decodeBase64url(publicKey);
  return bytes?.length !== ED25519_BYTES.key || !isSmallOrderEd25519(bytes);
}

function withoutSealingKey(record: unknown): unknown {
  if (typeof record !== "object" || record === null) return record;
  const { sealing_public_key: _, ...listed } = record as Record<string, unknown>;
  return listed;
}
