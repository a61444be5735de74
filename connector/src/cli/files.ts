import { readFile } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import { text } from "node:stream/consumers";
import { parseJson } from "../parse-json.ts";
import { Failure, usageError } from "./failure.ts";
import type { Input } from "./io.ts";

/** Files that commands read, and standard input. */

/** The text of a file, or of standard input for `-`. @throws {Failure} `usage`, without the text. */
export async function readText(file: string, io: Input): Promise<string> {
  if (file === "-") return await readInput(io);
  return await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read (${error.code}).`);
  });
}

/** All of standard input, which the signal ends: at a terminal nothing else may. @throws {Failure} `aborted`. */
export async function readInput({ stdin, signal }: Input): Promise<string> {
  try {
    return await text(addAbortSignal(signal, stdin));
  } catch (error) {
    throw signal.aborted ? new Failure("aborted", "Interrupted.", "Standard input had not ended.") : error;
  }
}

/** @param refusal of what is not JSON. The parser's own message would quote the text. */
export function jsonOf(given: string, refusal: () => Failure): unknown {
  try {
    return parseJson(given);
  } catch {
    throw refusal();
  }
}
