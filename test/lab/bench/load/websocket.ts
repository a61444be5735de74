import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { CLOSE, FIN, frameBytes, PING, PONG, readFrames, writeFrame } from "../../frames.ts";

/** A websocket client that costs little: frames are made ahead and written as they are. */
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
    this.write(buffer.subarray(0, writeFrame(buffer, 0, payload, FIN | opcode)));
  }

  /** Sends frames that are already made. */
  write(frames: Buffer): void {
    this.#socket.write(frames);
  }

  #receive(chunk: Buffer): void {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const payloads: Buffer[] = [];
    this.#rest = readFrames(data, (opcode, payload) => this.#frame(opcode, payload, payloads));
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

/** How many frames are made at once when the stock has run out. */
const LATE = 64;
/** So many are enough when they can go out again and again. */
const REPEATED = 512;

/** The frames that one sender will send, made ahead, side by side in memory, so that many leave in one write. */
export class Stock {
  readonly #make: () => string;
  readonly #opcode: number;
  readonly #repeatable: boolean;
  #slab: Buffer = Buffer.alloc(0);
  /** Where each frame begins, and the last one ends. */
  #bounds: number[] = [0];
  #next = 0;
  /** Frames that had to be made while the load was on: then the generator is slower than it could be. */
  late = 0;

  /** @param options.make the next message. @param options.repeatable the same frames may go out again and again. */
  constructor(options: { make: () => string; opcode: number; repeatable: boolean }) {
    this.#make = options.make;
    this.#opcode = options.opcode;
    this.#repeatable = options.repeatable;
  }

  /** Makes frames until so many are there. What stood before is dropped only when it is used up. */
  fill(count: number): void {
    const wanted = this.#repeatable ? REPEATED : count;
    const missing = wanted - (this.#bounds.length - 1 - this.#next);
    if (missing <= 0) return;
    const messages = Array.from({ length: missing }, this.#make);
    const kept = this.#slab.subarray(this.#bounds[this.#next], this.#bounds.at(-1));
    const room = messages.reduce((sum, message) => sum + frameBytes(Buffer.byteLength(message)), kept.length);
    const slab = Buffer.allocUnsafe(room);
    const shift = this.#bounds[this.#next] as number;
    const bounds = this.#bounds.slice(this.#next).map((at) => at - shift);
    let end = kept.copy(slab);
    for (const message of messages) {
      end = writeFrame(slab, end, message, FIN | this.#opcode);
      bounds.push(end);
    }
    this.#slab = slab;
    this.#bounds = bounds;
    this.#next = 0;
  }

  /** The next `count` frames. */
  take(count: number): Buffer {
    if (this.#next + count > this.#bounds.length - 1) this.#replenish(count);
    const from = this.#bounds[this.#next];
    this.#next += count;
    return this.#slab.subarray(from, this.#bounds[this.#next]);
  }

  #replenish(count: number): void {
    if (this.#repeatable && count <= this.#bounds.length - 1) {
      this.#next = 0;
      return;
    }
    this.fill(Math.max(count, LATE));
    this.late += Math.max(count, LATE);
  }
}
