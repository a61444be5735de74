import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { addAbortSignal } from "node:stream";
import { buffer } from "node:stream/consumers";
import { parseJson } from "../parse-json.ts";
import { Failure, usageError } from "./failure.ts";
import { decodeText } from "./file-text.ts";
import type { Input } from "./io.ts";

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
