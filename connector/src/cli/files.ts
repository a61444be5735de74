import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { type FileHandle, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { addAbortSignal } from "node:stream";
import { buffer } from "node:stream/consumers";
import { parseJson } from "../parse-json.ts";
import { isUtf16 } from "../utf16.ts";
import { Failure, usageError } from "./failure.ts";
import type { Input } from "./io.ts";

/** The folder of this package: of the sources, or of the package that a relay serves. */
export function packageFolder(): URL {
  let folder = new URL(".", import.meta.url);
  while (!existsSync(new URL("package.json", folder))) folder = new URL("..", folder);
  return folder;
}

/** Files that commands read, and standard input. */

const STANDARD_INPUT = "Standard input";

/** The text of a file, or of standard input for `-`. @throws {Failure} `usage`, without the text. */
export async function readText(file: string, io: Input): Promise<string> {
  if (file === "-") return await readInput(io);
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read (${error.code}).`);
  });
  return textIn(bytes, file);
}

/** All of standard input, which the signal ends: at a terminal nothing else may. @throws {Failure} `aborted`, `usage`. */
export async function readInput({ stdin, signal }: Input): Promise<string> {
  const bytes = await buffer(addAbortSignal(signal, stdin)).catch((error: unknown) => {
    throw signal.aborted ? new Failure("aborted", "Interrupted.", "Standard input had not ended.") : error;
  });
  return textIn(bytes, STANDARD_INPUT);
}

/** The lines of standard input, as they come, until its end or the signal. @throws {Failure} `usage`. */
export async function* inputLines({ stdin, signal }: Input): AsyncGenerator<string> {
  // One character for each byte: a line is decoded as a file is.
  stdin.setEncoding("latin1");
  const lines = createInterface({ input: stdin, signal });
  for await (const line of lines) yield textIn(Buffer.from(line, "latin1"), STANDARD_INPUT);
}

/**
 * The text of bytes that a person or their program wrote.
 * @param origin what they were read from, at the beginning of a sentence.
 * @throws {Failure} of the code, for what is no UTF-8.
 */
export function textIn(bytes: Uint8Array, origin: string, code = "usage"): string {
  const text = decodeText(bytes);
  if (text !== undefined) return text;
  throw new Failure(
    code,
    `${origin} is not UTF-8.`,
    "Write it as UTF-8, in PowerShell with Set-Content -Encoding utf8.",
  );
}

/** @param refusal of what is not JSON. The parser's own message would quote the text. */
export function jsonOf(given: string, refusal: () => Failure): unknown {
  try {
    return parseJson(given);
  } catch {
    throw refusal();
  }
}

/**
 * The text of a file, or of standard input, that a person or their program wrote, without a byte order mark of UTF-8.
 * Undefined for UTF-16, and for what is no UTF-8.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (isUtf16(bytes)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Files with secrets: made with mode 0600, a JSON object each, or a line. */

/** Writes a new file. @throws {Failure} when it exists: a key is never overwritten. */
export async function writePrivateFile(file: string, value: object): Promise<void> {
  await writePrivateText(file, JSON.stringify(value, null, 2));
}

/** The same, of a text without its last newline. */
export async function writePrivateText(file: string, text: string): Promise<void> {
  await write(file, text, async (error) => {
    if (error.code !== "EEXIST") throw notWritable(file, error);
    throw new Failure("failed", `${file} exists already. It was not changed.`, await hintOfTaken(file));
  });
}

/**
 * Puts another content in place of a file's; whoever reads it sees the old one or the new one, never a part. Owner, group and mode stay: who
 * could read the file still can. @throws {Failure}
 */
export async function replacePrivateFile(file: string, value: object): Promise<void> {
  const target = await realpath(file);
  const temporary = `${target}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const failed = async (error: NodeJS.ErrnoException) => {
      throw notWritable(file, error);
    };
    await write(temporary, JSON.stringify(value, null, 2), failed, (handle) => giveAccessOf(target, handle));
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** A warning about a file that users other than its owner may read; undefined for a private one. */
export async function permissionWarning(file: string): Promise<string | undefined> {
  const isShared = process.platform !== "win32" && ((await stat(file)).mode & 0o077) !== 0;
  return isShared ? `Other users can read ${file}. Run: chmod 600 ${file}` : undefined;
}

async function write(
  file: string,
  text: string,
  failed: (error: NodeJS.ErrnoException) => Promise<never>,
  prepare: (handle: FileHandle) => Promise<void> = async () => {},
): Promise<void> {
  const handle = await open(file, "wx", 0o600).catch(failed);
  try {
    await prepare(handle);
    await handle.writeFile(`${text}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function giveAccessOf(file: string, to: FileHandle): Promise<void> {
  const [{ uid, gid, mode }, own] = [await stat(file), await to.stat()];
  if (uid !== own.uid || gid !== own.gid) {
    await to.chown(uid, gid).catch(() => {
      const said = `${file} belongs to user ${uid} and group ${gid}, and this user (${own.uid}) cannot give a new file to them. It was not changed.`;
      throw new Failure("failed", said, "Run the command as that user, or as root.");
    });
  }
  await to.chmod(mode & 0o777);
}

/** A shell that writes standard output to the key file itself has emptied it before the command began. */
async function hintOfTaken(file: string): Promise<string> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return "It is a link to a file that cannot be read. Remove the link, or make that file.";
  if (found.size > 0) {
    return "Choose another name with --out, or move the old file away. If you sent standard output to a file, that file is empty now. To print the record of a key again, run relay keygen with its agent and its key file.";
  }
  return "It is empty, perhaps because standard output was sent to it. Remove it, and send standard output to a file of another name.";
}

function notWritable(file: string, { code }: NodeJS.ErrnoException): Failure {
  return new Failure("failed", `${file} cannot be written (${code}).`, "Choose another file.");
}
