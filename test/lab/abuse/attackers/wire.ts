import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { CLOSE, readFrames, TEXT } from "../../frames.ts";
import { FORWARDED } from "../target.ts";

/** A socket that an attacker writes to; its end is no error, since it is what the relay does about it. */

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

interface Handshake {
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
    this.#rest = readFrames(data, (opcode, payload) => {
      if (opcode === TEXT) this.onText?.(payload.toString());
      if (opcode === CLOSE) this.closedWith = payload.readUInt16BE(0);
    });
  }
}
