/** Bytes of a frame's header, by the length of its text. Source: RFC 6455, section 5.2. */
const SHORT_HEADER = 2;
const MEDIUM_HEADER = 4;
const LONG_HEADER = 10;
const FINAL_TEXT = 0x81;

/** One unmasked text frame for each text. Source: RFC 6455, section 5.2. */
export function framed(texts: readonly string[]): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  let size = 0;
  for (const length of lengths) size += headerBytes(length) + length;
  const buffer = Buffer.allocUnsafe(size);
  let at = 0;
  for (let index = 0; index < texts.length; index += 1) {
    at = writeHeader(buffer, at, lengths[index] as number);
    at += buffer.write(texts[index] as string, at);
  }
  return buffer;
}

function headerBytes(length: number): number {
  if (length < 126) return SHORT_HEADER;
  return length < 65_536 ? MEDIUM_HEADER : LONG_HEADER;
}

/** @returns the offset of the text. */
function writeHeader(buffer: Buffer, at: number, length: number): number {
  const header = headerBytes(length);
  buffer[at] = FINAL_TEXT;
  if (header === SHORT_HEADER) buffer[at + 1] = length;
  else if (header === MEDIUM_HEADER) {
    buffer[at + 1] = 126;
    buffer.writeUInt16BE(length, at + 2);
  } else {
    buffer[at + 1] = 127;
    buffer.writeBigUInt64BE(BigInt(length), at + 2);
  }
  return at + header;
}
