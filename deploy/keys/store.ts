import { readFile } from "node:fs/promises";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { KeyRing } from "relay-protocol/signing/key-ring.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { textIn } from "relay-runtime/files.ts";
import { withLock } from "../local/lock-file.mjs";
import { replaceFile, targetOf } from "../local/replace-file.ts";
import { fieldProblems } from "./field-problems.ts";
import { fileError } from "./file-error.ts";

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
