import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { FORWARDED } from "../support/addresses.ts";

/** A socket that an attacker writes to; its end is no error, since it is what the relay does about it. */

const TEXT = 1;
const CLOSE = 8;

/** Opens a connection and counts what goes out on it. Undefined when it was not taken. */
export async function openSocket(port: number): Promise<Socket | undefined> {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  socket.on("error", () => {});
  await Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => {});
  return socket.destroyed ? undefined : socket;
}

/** Resolves when the socket takes more, has ended, or the time is over. */
export async function drained(socket: Socket, over: AbortSignal): Promise<void> {
  if (socket.destroyed || !socket.writableNeedDrain || over.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      socket.off("drain", end).off("close", end);
      over.removeEventListener("abort", end);
      resolve();
    };
    socket.on("drain", end).on("close", end);
    over.addEventListener("abort", end);
  });
}

/** Resolves when the socket has ended, or the time is over. */
export async function ended(socket: Socket, over: AbortSignal): Promise<void> {
  if (!socket.destroyed && !over.aborted) await once(socket, "close", { signal: over }).catch(() => {});
}

export interface Handshake {
  readonly address: string;
  /** Further lines of the header. */
  readonly lines?: readonly string[];
}

/** One websocket, by hand. */
export class Wire {
  readonly socket: Socket;
  /** The header that the relay answered the upgrade with. */
  readonly head: string;
  /** Texts that came in, for who listens. */
  onText: ((text: string) => void) | undefined;
  /** The code of the relay's close frame, once it came in while somebody listens. */
  closedWith: number | undefined;
  #rest: Buffer;

  private constructor(socket: Socket, head: string, rest: Buffer) {
    this.socket = socket;
    this.head = head;
    this.#rest = rest;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
  }

  /** Undefined when the relay does not let it in. */
  static async open(port: number, { address, lines = [] }: Handshake): Promise<Wire | undefined> {
    const socket = await openSocket(port);
    socket?.write(
      [
        ...["GET /ws HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket"],
        ...["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`],
        ...[`${FORWARDED}: ${address}`, ...lines, "", ""],
      ].join("\r\n"),
    );
    let data = Buffer.alloc(0);
    while (socket !== undefined && !socket.destroyed && !data.includes("\r\n\r\n")) {
      const [chunk] = await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => []);
      if (Buffer.isBuffer(chunk)) data = Buffer.concat([data, chunk]);
    }
    const end = data.indexOf("\r\n\r\n") + 4;
    const head = data.toString("latin1", 0, end);
    if (socket === undefined || !head.startsWith("HTTP/1.1 101")) {
      socket?.destroy();
      return undefined;
    }
    return new Wire(socket, head, data.subarray(end));
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.socket.writable;
  }

  #receive(chunk: Buffer): void {
    if (this.onText === undefined) return;
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (data.length - at >= 2) {
      const { start, length } = extentOf(data, at);
      if (data.length < start + length) break;
      const opcode = (data[at] as number) & 15;
      if (opcode === TEXT) this.onText(data.toString("utf8", start, start + length));
      if (opcode === CLOSE) this.closedWith = data.readUInt16BE(start);
      at = start + length;
    }
    this.#rest = data.subarray(at);
  }
}

/** Where the payload of a frame begins and how long it is; beyond the data where that does not say it yet. */
function extentOf(data: Buffer, at: number): { start: number; length: number } {
  const length = (data[at + 1] as number) & 127;
  const unknown = { start: data.length, length: 1 };
  if (length === 126) return data.length < at + 4 ? unknown : { start: at + 4, length: data.readUInt16BE(at + 2) };
  if (length === 127) {
    return data.length < at + 10 ? unknown : { start: at + 10, length: Number(data.readBigUInt64BE(at + 2)) };
  }
  return { start: at + 2, length };
}

const MASK = [0x37, 0xfa, 0x21, 0x3d] as const;

/** A frame as clients send it. @param head opcode, with FIN and RSV bits. */
export function frameOf(payload: Buffer | string, head = 0x80 | TEXT): Buffer {
  const bytes = Buffer.from(payload);
  const isLong = bytes.length > 125;
  const frame = Buffer.alloc((isLong ? 8 : 6) + bytes.length);
  frame[0] = head;
  frame[1] = 0x80 | (isLong ? 126 : bytes.length);
  if (isLong) frame.writeUInt16BE(bytes.length, 2);
  const maskAt = isLong ? 4 : 2;
  frame.set(MASK, maskAt);
  for (const [n, byte] of bytes.entries()) frame[maskAt + 4 + n] = byte ^ (MASK[n & 3] as number);
  return frame;
}
