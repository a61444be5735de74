import { type Frame, readFrame } from "./frames.ts";
import { MAX_RECEIVED_CHARACTERS } from "./limits.ts";

/** After this long, a close handshake without an answer is given up. */
const CLOSE_WITHIN_MS = 1000;
const NO_CODE = 1006;

export interface SocketEvents {
  readonly frame: (frame: Frame) => void;
  /** Once, and not after `close`. */
  readonly closed: (code: number) => void;
}

/** One websocket of the platform: parsed frames in, texts out. */
export class Socket {
  readonly #url: string;
  readonly #events: SocketEvents;
  readonly #gone = Promise.withResolvers<void>();
  #socket: WebSocket | undefined;
  #closing = false;

  constructor(url: string, events: SocketEvents) {
    this.#url = url;
    this.#events = events;
  }

  open(): void {
    const socket = tryOpen(this.#url);
    if (socket === undefined) {
      this.#closed(NO_CODE);
      return;
    }
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      if (this.#closing) return;
      if (String(data).length > MAX_RECEIVED_CHARACTERS) return this.#giveUp(socket);
      const frame = readFrame(data);
      if (frame !== undefined) this.#events.frame(frame);
    });
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code }) => this.#closed(code || NO_CODE));
  }

  send(text: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  /** No event follows. Resolves when the socket is gone, or the other end does not answer the close. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#socket === undefined) return;
    this.#socket.close();
    const timer = setTimeout(() => this.#gone.resolve(), CLOSE_WITHIN_MS);
    await this.#gone.promise;
    clearTimeout(timer);
  }

  /** What is far too large was received whole, for the platform has no bound of its own; no more of it follows. */
  #giveUp(socket: WebSocket): void {
    socket.close();
    this.#closed(NO_CODE);
  }

  #closed(code: number): void {
    this.#gone.resolve();
    if (this.#closing) return;
    this.#closing = true;
    this.#events.closed(code);
  }
}

/** Undefined where the platform refuses it: a page on https may not open ws. */
function tryOpen(url: string): WebSocket | undefined {
  try {
    return new WebSocket(url);
  } catch {
    return undefined;
  }
}
