import { decodeText, IS_UTF_16 } from "runtime/file-text.ts";

/**
 * The text of a file that a command reads, or of standard input.
 * @param origin what the bytes were read from, at the beginning of a sentence.
 * @throws {Error} for UTF-16, with what to do.
 */
export function textIn(bytes: Uint8Array, origin: string): string {
  const text = decodeText(bytes);
  if (text !== undefined) return text;
  throw new Error(`${origin} ${IS_UTF_16}.`);
}
