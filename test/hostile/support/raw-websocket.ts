import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Frame } from "../../support/agent.ts";
import { until } from "../../support/until.ts";
import { type ClientFrame, encode, OPCODES } from "./frames.ts";

/** A handshake that keeps the rules. Source: RFC 6455, section 4.1. */
export const HANDSHAKE =
  "GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/** A websocket made by hand: what it writes is bytes, what it reads is understood frame by frame. */
export class RawWebsocket {
  /** The answer to the handshake, and to what was asked before it. */
  head = "";
  readonly texts: string[] = [];
  readonly pongs: Buffer[] = [];
  /** Code of the relay's close frame; 1005 when it has none. */
  closeCode: number | null = null;
  /** The relay ended its half, or the connection is gone. */
  isEnded = false;
  readonly #stream: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #isUpgraded = false;

  constructor(port: number) {
    this.#stream = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    this.#stream.on("data", (bytes) => this.#read(bytes));
    this.#stream.on("error", () => {});
    for (const event of ["end", "close"]) {
      this.#stream.on(event, () => {
        this.isEnded = true;
      });
    }
  }

  /** Connects, shakes hands and waits for hello. */
  static async open(port: number): Promise<RawWebsocket> {
    const socket = new RawWebsocket(port);
    socket.write(HANDSHAKE);
    await until("hello", () => socket.texts.length === 1);
    return socket;
  }

  write(bytes: Uint8Array | string): void {
    this.#stream.write(bytes);
  }

  /** Shakes hands and sends a first frame in one packet. */
  shakeHandsWith(first: ClientFrame): void {
    this.write(Buffer.concat([Buffer.from(HANDSHAKE), encode(first)]));
  }

  /** Writes frames, cut into pieces of so many bytes. */
  send(frames: readonly ClientFrame[], pieceBytes = Number.POSITIVE_INFINITY): void {
    const bytes = Buffer.concat(frames.map(encode));
    for (let at = 0; at < bytes.length; at += pieceBytes) this.write(bytes.subarray(at, at + pieceBytes));
  }

  /** Ends this side of the stream; what the relay has to say can still be read. */
  finish(): void {
    this.#stream.end();
  }

  /** Something came before the handshake's answer. */
  get isAnswered(): boolean {
    return this.#unread.length > 0;
  }

  /** Acks and errors. */
  get answers(): Frame[] {
    return this.texts.map((text) => JSON.parse(text)).filter(({ frame }) => frame === "ack" || frame === "error");
  }

  /** The code of the relay's close frame. */
  async untilClosed(): Promise<number> {
    await until("the relay closes the connection", () => this.isEnded);
    return this.closeCode ?? 1006;
  }

  async end(): Promise<void> {
    if (this.#stream.closed) return;
    const closed = once(this.#stream, "close");
    this.#stream.destroy();
    await closed;
  }

  #read(bytes: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, bytes]);
    if (!this.#isUpgraded) {
      const upgraded = this.#unread.indexOf("HTTP/1.1 101 ");
      const end = this.#unread.indexOf("\r\n\r\n", upgraded);
      if (upgraded < 0 || end < 0) return;
      this.#isUpgraded = true;
      this.head = this.#unread.toString("latin1", 0, end);
      this.#unread = this.#unread.subarray(end + 4);
    }
    while (this.#takeFrame());
  }

  /** Takes one frame from what is unread; false when there is no whole one. */
  #takeFrame(): boolean {
    const bytes = this.#unread;
    if (bytes.length < 2) return false;
    const short = bytes.readUInt8(1);
    const start = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (bytes.length < start) return false;
    const length = start === 10 ? Number(bytes.readBigUInt64BE(2)) : start === 4 ? bytes.readUInt16BE(2) : short;
    if (bytes.length < start + length) return false;
    this.#note(bytes.readUInt8(0) & 0x0f, bytes.subarray(start, start + length));
    this.#unread = bytes.subarray(start + length);
    return true;
  }

  #note(opcode: number, payload: Buffer): void {
    if (opcode === OPCODES.text) this.texts.push(payload.toString());
    if (opcode === OPCODES.pong) this.pongs.push(payload);
    if (opcode === OPCODES.close) this.closeCode = payload.length === 0 ? 1005 : payload.readUInt16BE();
  }
}
