const UTF_16_MARKS: readonly (readonly [number, number])[] = [
  [0xff, 0xfe],
  [0xfe, 0xff],
];

/** What is wrong with a text that is not decoded. It goes on a sentence that begins with the name of the file. */
export const NOT_UTF_8 = "is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8";

/**
 * The text of a file, or of standard input, that a person or their program wrote, without a byte order mark of UTF-8.
 * Undefined for UTF-16, which `>` of Windows PowerShell writes.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  const isUtf16 = UTF_16_MARKS.some(([first, second]) => bytes[0] === first && bytes[1] === second);
  return isUtf16 ? undefined : new TextDecoder().decode(bytes);
}

/**
 * The text of a file that a command reads, or of standard input.
 * @param origin what the bytes were read from, at the beginning of a sentence.
 * @throws {Error} for UTF-16, with what to do.
 */
export function textIn(bytes: Uint8Array, origin: string): string {
  const text = decodeText(bytes);
  if (text !== undefined) return text;
  throw new Error(`${origin} ${NOT_UTF_8}.`);
}
