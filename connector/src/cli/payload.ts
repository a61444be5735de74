import { parseJson } from "../parse-json.ts";
import type { JsonObject } from "../types.ts";
import { usageError } from "./failure.ts";
import { readInput } from "./files.ts";
import type { Input } from "./io.ts";

/** The payload that a word gives, or standard input for `-` or no word. @throws {Failure} `usage`. */
export async function readPayload(word: string | undefined, io: Input): Promise<JsonObject> {
  return payloadOf(await payloadText(word, io));
}

async function payloadText(word: string | undefined, io: Input): Promise<string> {
  if (word !== undefined && word !== "-") return word;
  if ((io.stdin as { isTTY?: boolean }).isTTY && word === undefined)
    throw usageError("The payload is missing: give it as the second word, or pipe it in.");
  return await readInput(io);
}

function payloadOf(given: string): JsonObject {
  try {
    const value: unknown = parseJson(given);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Reported below, without the text.
  }
  throw usageError("The payload is not a JSON object.", `Quote it as one word, such as '{"message":"Hello"}'.`);
}
