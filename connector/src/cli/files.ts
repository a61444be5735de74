import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { parseJson } from "../parse-json.ts";
import { type Failure, usageError } from "./failure.ts";
import type { Io } from "./io.ts";

/** Files that commands read. */

/** The text of a file, or of standard input for `-`. @throws {Failure} `usage`, without the text. */
export async function readText(file: string, { stdin }: Pick<Io, "stdin">): Promise<string> {
  if (file === "-") return await text(stdin);
  return await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw usageError(`${file} cannot be read (${error.code}).`);
  });
}

/** @param refusal of what is not JSON. The parser's own message would quote the text. */
export function jsonOf(given: string, refusal: () => Failure): unknown {
  try {
    return parseJson(given);
  } catch {
    throw refusal();
  }
}
