const UTF_16_MARKS: readonly (readonly [number, number])[] = [
  [0xff, 0xfe],
  [0xfe, 0xff],
];

/**
 * The text of a file, or of standard input, that a person or their program wrote, without a byte order mark of UTF-8.
 * Undefined for UTF-16, which `>` of Windows PowerShell writes.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  const isUtf16 = UTF_16_MARKS.some(([first, second]) => bytes[0] === first && bytes[1] === second);
  return isUtf16 ? undefined : new TextDecoder().decode(bytes);
}
