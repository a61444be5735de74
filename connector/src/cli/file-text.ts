import { isUtf16 } from "../utf16.ts";

/**
 * The text of a file, or of standard input, that a person or their program wrote, without a byte order mark of UTF-8.
 * Undefined for UTF-16.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  return isUtf16(bytes) ? undefined : new TextDecoder().decode(bytes);
}
