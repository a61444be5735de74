/**
 * Websocket frames by hand, for clients that cost little or mean harm: made ahead and written as they are. They read servers
 * that behave: whole frames, no compression. Source: RFC 6455.
 */

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** The frame is a whole message, or its end. */
export const FIN = 0x80;
/** One mask for every frame, so that frames can be made ahead; the server unmasks as it does for any. */
const MASK = [0x37, 0xfa, 0x21, 0x3d] as const;
const HEADER_BYTES = 8;

/** Writes one client frame of less than 64 KiB at `offset`. Returns where it ends. @param head opcode, with FIN and RSV bits. */
export function writeFrame(buffer: Buffer, offset: number, payload: string | Buffer, head: number): number {
  const length = Buffer.byteLength(payload);
  buffer[offset] = head;
  let at = offset + 2;
  if (length < 126) {
    buffer[offset + 1] = 0x80 | length;
  } else {
    buffer[offset + 1] = 0x80 | 126;
    buffer.writeUInt16BE(length, at);
    at += 2;
  }
  for (const byte of MASK) buffer[at++] = byte;
  if (typeof payload === "string") buffer.write(payload, at);
  else payload.copy(buffer, at);
  for (let n = 0; n < length; n += 1) buffer[at + n] = (buffer[at + n] as number) ^ (MASK[n & 3] as number);
  return at + length;
}

/** The most bytes that `writeFrame` takes for a payload of so many. */
export function frameBytes(payloadBytes: number): number {
  return payloadBytes + HEADER_BYTES;
}

/** @param head opcode, with FIN and RSV bits: a whole text unless told otherwise. */
export function frameOf(payload: string | Buffer, head = FIN | TEXT): Buffer {
  const buffer = Buffer.alloc(frameBytes(Buffer.byteLength(payload)));
  return buffer.subarray(0, writeFrame(buffer, 0, payload, head));
}

/** Hands each whole frame of what a server said to `take`. Returns the rest. */
export function readFrames(data: Buffer, take: (opcode: number, payload: Buffer) => void): Buffer {
  let at = 0;
  while (data.length - at >= 2) {
    let length = (data[at + 1] as number) & 127;
    let start = at + 2;
    if (length === 126) {
      if (data.length < at + 4) break;
      length = data.readUInt16BE(at + 2);
      start = at + 4;
    } else if (length === 127) {
      if (data.length < at + 10) break;
      length = Number(data.readBigUInt64BE(at + 2));
      start = at + 10;
    }
    if (data.length < start + length) break;
    take((data[at] as number) & 15, data.subarray(start, start + length));
    at = start + length;
  }
  return at === data.length ? Buffer.alloc(0) : data.subarray(at);
}
