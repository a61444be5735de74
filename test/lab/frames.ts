import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/**
 * A websocket client that costs little: frames are made ahead and written as they are. It is for servers that behave:
 * whole frames, no compression. Source: RFC 6455.
 */

export const TEXT = 1;
export const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** One mask for every frame, so that frames can be made ahead; the server unmasks as it does for any. */
const MASK = [0x37, 0xfa, 0x21, 0x3d] as const;
const HEADER_BYTES = 8;

/** Writes one client frame of less than 64 KiB at `offset`. Returns where it ends. */
export function writeFrame(buffer: Buffer, offset: number, payload: string, opcode: number): number {
  const length = Buffer.byteLength(payload);
  buffer[offset] = 0x80 | opcode;
  let at = offset + 2;
  if (length < 126) {
    buffer[offset + 1] = 0x80 | length;
  } else {
    buffer[offset + 1] = 0x80 | 126;
    buffer.writeUInt16BE(length, at);
    at += 2;
  }
  for (const byte of MASK) buffer[at++] = byte;
  buffer.write(payload, at);
  for (let n = 0; n < length; n += 1) buffer[at + n] = (buffer[at + n] as number) ^ (MASK[n & 3] as number);
  return at + length;
}

/** The most bytes that `writeFrame` takes for a payload of so many. */
export function frameBytes(payloadBytes: number): number {
  return payloadBytes + HEADER_BYTES;
}

export class WebSocketClient {
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  /** Payloads that nobody has taken. */
  readonly #waiting: Buffer[] = [];
  #wake: (() => void) | undefined;
  #take: ((payloads: Buffer[]) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
  }

  /** @throws Error when the server does not take the upgrade. */
  static async open(port: number, path: string): Promise<WebSocketClient> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.setNoDelay(true);
    const key = randomBytes(16).toString("base64");
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    );
    let head = Buffer.alloc(0);
    while (!head.includes("\r\n\r\n")) head = Buffer.concat([head, (await once(socket, "data"))[0] as Buffer]);
    if (!head.toString("latin1").startsWith("HTTP/1.1 101")) throw new Error(`No upgrade: ${head.toString("latin1")}`);
    const client = new WebSocketClient(socket);
    client.#receive(head.subarray(head.indexOf("\r\n\r\n") + 4));
    return client;
  }

  /** From here on `take` gets what comes in, all payloads of one chunk at once; first what waits. */
  onPayloads(take: (payloads: Buffer[]) => void): void {
    this.#take = take;
    if (this.#waiting.length > 0) take(this.#waiting.splice(0));
  }

  /** The next payload, as text; for handshakes. */
  async next(): Promise<string> {
    while (this.#waiting.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return (this.#waiting.shift() as Buffer).toString();
  }

  send(payload: string, opcode: number): void {
    const buffer = Buffer.allocUnsafe(frameBytes(Buffer.byteLength(payload)));
    this.write(buffer.subarray(0, writeFrame(buffer, 0, payload, opcode)));
  }

  /** Sends frames that are already made. */
  write(frames: Buffer): void {
    this.#socket.write(frames);
  }

  #receive(chunk: Buffer): void {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const payloads: Buffer[] = [];
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
      this.#frame((data[at] as number) & 15, data.subarray(start, start + length), payloads);
      at = start + length;
    }
    this.#rest = at === data.length ? Buffer.alloc(0) : data.subarray(at);
    if (payloads.length === 0) return;
    if (this.#take !== undefined) {
      this.#take(payloads);
      return;
    }
    this.#waiting.push(...payloads);
    this.#wake?.();
  }

  #frame(opcode: number, payload: Buffer, payloads: Buffer[]): void {
    if (opcode === PING) this.send(payload.toString(), PONG);
    else if (opcode === CLOSE) throw new Error(`The server closed with ${payload.readUInt16BE(0)}.`);
    else if (opcode !== PONG) payloads.push(payload);
  }
}
