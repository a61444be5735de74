import { isUtf16 } from "../utf16.ts";

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
