import { crc32 } from "node:zlib";

/** A file of an npm package. */
export interface PackedText {
  /** Under `package/`; with it at most 100 characters. */
  readonly path: string;
  readonly text: string;
  readonly isProgram?: boolean;
}

/** The time that npm itself gives to all files of a package: 1985-10-26T08:15:00Z. */
const TIME_SECONDS = 499_162_500;
const BLOCK_BYTES = 512;

/**
 * An npm tarball: the same files give the same bytes on every machine. It is gzip without compression, since what deflate
 * makes of a text differs between versions of zlib and between processors, and one path must never give two contents.
 */
export function tarball(files: readonly PackedText[]): Buffer {
  const sorted = files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  return gzipStored(Buffer.concat([...sorted.flatMap(entry), Buffer.alloc(2 * BLOCK_BYTES)]));
}

/** Source: POSIX.1-2024, pax, "ustar Interchange Format". */
function entry({ path, text, isProgram = false }: PackedText): Buffer[] {
  const content = Buffer.from(text);
  const name = `package/${path}`;
  if (name.length > 100) throw new Error(`too long for a tar header: ${name}`);
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, 0);
  header.write(octal(isProgram ? 0o755 : 0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content.length, 12), 124);
  header.write(octal(TIME_SECONDS, 12), 136);
  header.write(" ".repeat(8), 148);
  header.write("0", 156);
  header.write("ustar\x0000", 257);
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  header.write(`${octal(checksum, 7)} `, 148);
  return [header, content, Buffer.alloc(-content.length & (BLOCK_BYTES - 1))];
}

/** A number in octal digits with a NUL at its end. */
function octal(value: number, length: number): string {
  return `${value.toString(8).padStart(length - 1, "0")}\0`;
}

const MAX_STORED_BYTES = 0xffff;
/** Deflate, no flags, no time, no extra flags, unknown system. */
const GZIP_HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);

/** Source: RFC 1952, section 2.3; RFC 1951, section 3.2.4. */
function gzipStored(data: Buffer): Buffer {
  const parts: Buffer[] = [GZIP_HEADER];
  for (let start = 0; start < data.length; start += MAX_STORED_BYTES) {
    const block = data.subarray(start, start + MAX_STORED_BYTES);
    const head = Buffer.alloc(5);
    head.writeUInt8(start + block.length === data.length ? 1 : 0, 0);
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(~block.length & 0xffff, 3);
    parts.push(head, block);
  }
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(data), 0);
  trailer.writeUInt32LE(data.length, 4);
  return Buffer.concat([...parts, trailer]);
}
