import { crc32 } from "node:zlib";

/** A file of an archive. */
export interface ZippedFile {
  readonly path: string;
  readonly content: Buffer;
}

/** 1980-01-01, the earliest that the format can say: the same files give the same bytes whenever they are packed. */
const DATE = 0x21;
const VERSION = 20;
const UTF_8_NAME = 0x0800;
/** Of a regular file that all may read, made on Unix. */
const MADE_ON_UNIX = (3 << 8) | VERSION;
const MODE = (0o100644 << 16) >>> 0;

/** A ZIP archive without compression: what deflate makes of a text differs between versions of zlib. */
export function zip(files: readonly ZippedFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const file of files) {
    const name = Buffer.from(file.path);
    const fields = fieldsOf(file.content, name);
    directory.push(entryOf(fields, offset), name);
    parts.push(headerOf(fields), name, file.content);
    offset += 30 + name.length + file.content.length;
  }
  const listed = Buffer.concat(directory);
  return Buffer.concat([...parts, listed, endOf(files.length, listed.length, offset)]);
}

/** What the header of a file and its entry in the directory have alike. */
function fieldsOf(content: Buffer, name: Buffer): Buffer {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(VERSION, 0);
  fields.writeUInt16LE(UTF_8_NAME, 2);
  fields.writeUInt16LE(DATE, 8);
  fields.writeUInt32LE(crc32(content), 10);
  fields.writeUInt32LE(content.length, 14);
  fields.writeUInt32LE(content.length, 18);
  fields.writeUInt16LE(name.length, 22);
  return fields;
}

function headerOf(fields: Buffer): Buffer {
  return Buffer.concat([Buffer.from("PK\x03\x04"), fields]);
}

function entryOf(fields: Buffer, offset: number): Buffer {
  const head = Buffer.alloc(6);
  head.write("PK\x01\x02", "latin1");
  head.writeUInt16LE(MADE_ON_UNIX, 4);
  const rest = Buffer.alloc(14);
  rest.writeUInt32LE(MODE, 6);
  rest.writeUInt32LE(offset, 10);
  return Buffer.concat([head, fields, rest]);
}

function endOf(count: number, bytes: number, offset: number): Buffer {
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(bytes, 12);
  end.writeUInt32LE(offset, 16);
  return end;
}
