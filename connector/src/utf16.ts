/** Of UTF-16: a byte order mark, as `>` of Windows PowerShell writes, or an ASCII character first, as in JSON. */
export function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes;
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return isMarked || (second !== undefined && (first === 0) !== (second === 0));
}
