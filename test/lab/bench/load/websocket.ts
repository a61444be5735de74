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
