import { open, readFile, rm } from "node:fs/promises";
import { IssuerRecord, KeysFile, SigningKeyRecord } from "relay-protocol/contract/keys-file.ts";
import { decodeBase64url, ED25519_BYTES, isSmallOrderEd25519 } from "relay-protocol/signing/algorithms.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { textIn } from "relay-runtime/files.ts";
import { z } from "zod";
import { withLock } from "../local/lock-file.mjs";
import { replaceFile, targetOf } from "../local/replace-file.ts";

const LOCK_TIMEOUT_MS = 10_000;

/**
 * Reads and validates a keys file.
 * @throws {Error} when it does not exist or is invalid.
 */
export async function readKeys(file: string): Promise<KeysFile> {
  const text = await textOf(file);
  if (text === undefined) throw new Error(`There is no keys file at ${file}. ${NAMED_BY}`);
  return parse(text, file);
}

/**
 * Changes a keys file, or creates it, with mode 0600. Edits by several processes run one after the other.
 * @returns what the file says now.
 * @throws {Error} when the file is invalid before or after the change, or cannot be replaced as it is; it is then unchanged.
 */
export async function editKeys(file: string, change: (keys: KeysFile) => KeysFile): Promise<KeysFile> {
  const edit = async () => {
    const target = await targetOf(file);
    return await withLock(`${target}.lock`, LOCK_TIMEOUT_MS, async (check) => {
      const text = await textOf(target);
      const keys = text === undefined ? KeysFile.parse({}) : parse(text, target);
      const changed = validate(change(keys), target);
      // Without the lock it would undo what another command has changed since.
      check();
      await replaceFile(target, `${JSON.stringify(changed, null, 2)}\n`);
      return changed;
    });
  };
  return await edit().catch((error: NodeJS.ErrnoException) => {
    throw error.code === undefined ? error : keysFileError(file, "changed", error);
  });
}

const NAMED_BY = "--file or RELAY_KEYS_FILE names the keys file.";

function keysFileError(file: string, use: "read" | "changed", error: NodeJS.ErrnoException): Error {
  return new Error(`${fileError(file, use, error).message} ${NAMED_BY}`);
}

async function textOf(file: string): Promise<string | undefined> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw keysFileError(file, "read", error);
  });
  return bytes && textIn(bytes, file);
}

function parse(text: string, file: string): KeysFile {
  try {
    return validate(parseJson(text), file);
  } catch (error) {
    // The parser's message would quote the text, secrets included.
    if (error instanceof SyntaxError) throw new Error(`${file} is not valid JSON; it was not changed.`);
    throw error;
  }
}

/** The same validation as a running relay's. */
function validate(value: unknown, file: string): KeysFile {
  const result = KeysFile.safeParse(value);
  if (!result.success) throw invalid(file, fieldProblems(value, result.error));
  try {
    KeyRing.from(result.data);
  } catch (error) {
    throw invalid(file, (error as Error).message);
  }
  return result.data;
}

function invalid(file: string, problems: string): Error {
  return new Error(`${file} would be invalid; it was not changed.\n${problems}`);
}

const MOST = 16;
/** What may be a misspelled name. A secret in the place of a name is longer. */
const PLAIN_NAME = /^\w{1,32}$/;

/** A line for each field that is missing or wrong, for the first of them. No value is in it: one may be a secret. */
function fieldProblems(value: unknown, { issues }: z.ZodError): string {
  const lines = issues.slice(0, MOST).map((issue) => `  ${problemOf(value, issue)}`);
  const more = issues.length - lines.length;
  return [...lines, ...(more > 0 ? [`  ${more} more are not shown.`] : [])].join("\n");
}

function problemOf(value: unknown, issue: z.core.$ZodIssue): string {
  const { path } = issue;
  const field = z.core.toDotPath(path);
  if (path.length > 0 && memberAt(value, path) === undefined) return `${field} is missing.`;
  const problem = messageOf(issue).replace(/^Invalid (?:input|string): /, "");
  return `${field || "the whole"}: ${problem}.`;
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== "unrecognized_keys") return issue.message;
  const shown = issue.keys.filter((name) => PLAIN_NAME.test(name)).slice(0, MOST);
  const hidden = issue.keys.length - shown.length;
  const names = shown.map((name) => `"${name}"`);
  return `unknown names: ${[...names, ...(hidden > 0 ? [`${hidden} not shown`] : [])].join(", ")}`;
}

function memberAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((at, name) => (at as Record<PropertyKey, unknown> | null | undefined)?.[name], value);
}

/** Where a file is to be written, what is wrong is often its folder. */
const OF_READING: Readonly<Record<string, string>> = {
  EACCES: "This user may not read it: run the command as its owner, or as root.",
  ENOENT: "It is not there: correct its path.",
};
const OF_WRITING: Readonly<Record<string, string>> = {
  EACCES: "This user may not write to its folder: run the command as the owner, or as root.",
  ENOENT: "Its folder is not there: make it, or correct the path.",
};
const OF_BOTH: Readonly<Record<string, string>> = {
  EISDIR: "It is a folder: name a file.",
  ENOTDIR: "A part of its path is no folder: correct the path.",
  ENOSPC: "The disk is full: make room, then run the command again.",
  EDQUOT: "The quota of this user is used up: make room, then run the command again.",
  EROFS: "Its file system is read-only: name a file elsewhere.",
};

/** Why a file cannot be used, and what to do, in one line. @param use what was to be done with it. */
export function fileError(
  file: string,
  use: "read" | "changed" | "written",
  { code = "" }: NodeJS.ErrnoException,
): Error {
  const advice = OF_BOTH[code] ?? (use === "read" ? OF_READING : OF_WRITING)[code === "EPERM" ? "EACCES" : code];
  return new Error([`${file} cannot be ${use} (${code}).`, ...(advice === undefined ? [] : [advice])].join(" "));
}

/** Writes a file that only its owner may read. @throws {Error} when the file exists: a key is never overwritten. */
export async function writePrivateFile(file: string, value: object): Promise<void> {
  await using handle = await open(file, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw unwritten(file, error);
    throw new Error(`${file} exists already and is never overwritten. Choose another --out.`);
  });
  try {
    await handle.writeFile(`${JSON.stringify(value, null, 2)}\n`);
    await handle.sync();
  } catch (error) {
    // A part of it would be in the way of the next run.
    await rm(file, { force: true });
    throw unwritten(file, error as NodeJS.ErrnoException);
  }
}

function unwritten(file: string, error: NodeJS.ErrnoException): Error {
  return new Error(`${fileError(file, "written", error).message} Choose another --out.`);
}

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
