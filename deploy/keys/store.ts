import { open, readFile, realpath, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { KeysFile } from "protocol/contract/keys-file.ts";
import { parseJson } from "protocol/intake/parse-json.ts";
import { KeyRing } from "protocol/signing/key-ring.ts";
import { z } from "zod";
import { withLock } from "../local/lock-file.mjs";

const LOCK_TIMEOUT_MS = 10_000;

/**
 * Reads and validates a keys file.
 * @throws {Error} when it does not exist or is invalid.
 */
export async function readKeys(file: string): Promise<KeysFile> {
  const text = await textOf(file);
  if (text === undefined) throw new Error(`There is no keys file at ${file}.`);
  return parse(text, file);
}

/**
 * Changes a keys file, or creates it. Edits by several processes run one after the other. A reader sees the whole file
 * before or after a change, never a part: the new text is on disk before it is renamed into place. Mode 0600.
 * @throws {Error} when the file is invalid before or after the change; it is then unchanged.
 */
export async function editKeys(file: string, change: (keys: KeysFile) => KeysFile): Promise<void> {
  const target = await realpath(file).catch(() => file);
  await withLock(`${target}.lock`, LOCK_TIMEOUT_MS, async () => {
    const text = await textOf(target);
    const keys = text === undefined ? KeysFile.parse({}) : parse(text, target);
    await replaceFile(target, `${JSON.stringify(validate(change(keys), target), null, 2)}\n`);
  });
}

/** Replaces a private file atomically; it survives a power failure. Mode 0600. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  await rm(temporary, { force: true });
  try {
    await using handle = await open(temporary, "wx", 0o600);
    await handle.writeFile(text);
    await handle.sync();
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await using folder = await open(dirname(file), "r");
  await folder.sync();
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
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
  if (!result.success) throw invalid(file, z.prettifyError(result.error));
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
