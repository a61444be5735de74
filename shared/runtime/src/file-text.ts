/** What is wrong with a text that is not decoded. It goes on a sentence that begins with the name of the file. */
export const NOT_UTF_8 = "is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8";

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

/** Of UTF-16: a byte order mark, as `>` of Windows PowerShell writes, or an ASCII character first, as in JSON. */
function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes;
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return isMarked || (second !== undefined && (first === 0) !== (second === 0));
}

/**
 * The text of a file that a command reads, or of standard input.
 * @param origin what the bytes were read from, at the beginning of a sentence.
 * @throws {Error} for what is no UTF-8, with what to do.
 */
export function textIn(bytes: Uint8Array, origin: string): string {
  const text = decodeText(bytes);
  if (text !== undefined) return text;
  throw new Error(`${origin} ${NOT_UTF_8}.`);
}
