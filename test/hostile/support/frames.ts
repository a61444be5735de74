/** Frames of a websocket as a client writes them, rules of RFC 6455 kept or broken. */

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface ClientFrame {
  readonly opcode: number;
  readonly payload: Uint8Array;
  readonly fin: boolean;
  /** Three bits. */
  readonly rsv: number;
  readonly masked: boolean;
  /** Bytes that the length takes beyond the second one; more than it needs is against the rules. */
  readonly lengthBytes: 0 | 2 | 8;
  /** What the length says, when that is not the truth. */
  readonly announced?: bigint;
}

/** A frame that keeps the rules, but for what `fields` say. */
export function frame(
  opcode: number,
  payload: Uint8Array | string = "",
  fields: Partial<ClientFrame> = {},
): ClientFrame {
  const bytes = Buffer.from(payload);
  const lengthBytes = bytes.length < 126 ? 0 : bytes.length < 65_536 ? 2 : 8;
  return { opcode, payload: bytes, fin: true, rsv: 0, masked: true, lengthBytes, ...fields };
}

/** A close frame. Source: RFC 6455, section 5.5.1. */
export function closeFrame(code: number, reason: Uint8Array | string = ""): ClientFrame {
  return frame(OPCODES.close, Buffer.concat([Buffer.of(code >> 8, code & 0xff), Buffer.from(reason)]));
}

/** The bytes of a frame. Source: RFC 6455, section 5.2. */
export function encode({ opcode, payload, fin, rsv, masked, lengthBytes, announced }: ClientFrame): Buffer {
  const length = announced ?? BigInt(payload.length);
  const extended = Buffer.alloc(lengthBytes);
  if (lengthBytes === 2) extended.writeUInt16BE(Number(length));
  if (lengthBytes === 8) extended.writeBigUInt64BE(length);
  const short = lengthBytes === 0 ? Number(length) : lengthBytes === 2 ? 126 : 127;
  const head = Buffer.of((fin ? 0x80 : 0) | (rsv << 4) | opcode, (masked ? 0x80 : 0) | short);
  if (!masked) return Buffer.concat([head, extended, payload]);
  const key = Buffer.of(0x1f, 0x2e, 0x3d, 0x4c);
  return Buffer.concat([head, extended, key, payload.map((byte, at) => byte ^ (key[at % 4] as number))]);
}

/** What the relay owes a client: so many answers and pongs, and how it ends. */
export interface Outcome {
  readonly answers: number;
  /** At most: of pings that are read at once the last is answered. Source: RFC 6455, section 5.5.3. */
  readonly pongs: number;
  /** Close code, or null while the connection goes on. */
  readonly closed: number | null;
}

const MAX_MESSAGE_BYTES = 32_768;

/**
 * What RFC 6455 and docs/protocol.md#frames, ask for after these frames, read frame by frame as they stand there. Texts
 * are taken for no envelopes: each gets one answer.
 */
export function outcomeOf(frames: readonly ClientFrame[]): Outcome {
  let answers = 0;
  let pongs = 0;
  let open: { readonly opcode: number; readonly parts: Uint8Array[] } | null = null;
  for (const one of frames) {
    const closed = faultOf(one, open !== null) ?? closeCodeOf(one);
    if (closed !== null) return { answers, pongs, closed };
    if (one.opcode === OPCODES.ping) pongs += 1;
    if (one.opcode >= OPCODES.close) continue;

    open ??= { opcode: one.opcode, parts: [] };
    open.parts.push(one.payload);
    const message = Buffer.concat(open.parts);
    if (message.length > MAX_MESSAGE_BYTES) return { answers, pongs, closed: 1009 };
    if (!one.fin) continue;
    if (open.opcode === OPCODES.binary) return { answers, pongs, closed: 1003 };
    if (!isUtf8(message)) return { answers, pongs, closed: 1007 };
    answers += 1;
    open = null;
  }
  return { answers, pongs, closed: null };
}

function faultOf({ opcode, fin, rsv, masked, payload }: ClientFrame, isFragmented: boolean): number | null {
  const isControl = opcode >= OPCODES.close;
  const isKnown = (Object.values(OPCODES) as number[]).includes(opcode);
  if (rsv !== 0 || !masked || !isKnown) return 1002;
  if (isControl) return fin && payload.length <= 125 ? null : 1002;
  return (opcode === OPCODES.continuation) === isFragmented ? null : 1002;
}

/** What a close frame is answered with; null for every other frame. Without a code the answer has none: 1005. */
function closeCodeOf({ opcode, payload }: ClientFrame): number | null {
  if (opcode !== OPCODES.close) return null;
  if (payload.length === 0) return 1005;
  if (payload.length === 1) return 1002;
  const code = Buffer.from(payload).readUInt16BE();
  if (!isCloseCode(code)) return 1002;
  return isUtf8(payload.subarray(2)) ? code : 1007;
}

/** Codes that may stand in a close frame. Source: RFC 6455, section 7.4; IANA WebSocket close code registry. */
export function isCloseCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);
}

export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
