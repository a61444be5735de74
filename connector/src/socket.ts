import { type CuttableWebSocket, openWebSocket } from "./cuttable-websocket.ts";
import { type Frame, readFrame } from "./frames.ts";
import { CLOSE_WITHIN_MS, MAX_RECEIVED_CHARACTERS } from "./limits.ts";
import type { AttemptFailure } from "./network-errors.ts";

const NO_CODE = 1006;

export interface SocketEvents {
  readonly frame: (frame: Frame) => void;
  /** Once, and not after `close`. @param failure why it was not opened, where that is known. */
  readonly closed: (code: number, failure?: AttemptFailure) => void;
}

/** One websocket of the platform: parsed frames in, texts out. */
export class Socket {
  readonly #url: string;
  readonly #events: SocketEvents;
  readonly #gone = Promise.withResolvers<void>();
  #socket: CuttableWebSocket | undefined;
  #closing = false;

  constructor(url: string, events: SocketEvents) {
    this.#url = url;
    this.#events = events;
  }

  open(): void {
    const socket = openWebSocket(this.#url);
    if (socket === undefined) {
      this.#closed(NO_CODE);
      return;
    }
    this.#socket = socket;
    const { websocket } = socket;
    websocket.addEventListener("message", ({ data }) => {
      if (this.#closing) return;
      if (String(data).length > MAX_RECEIVED_CHARACTERS) return this.#closed(NO_CODE);
      const frame = readFrame(data);
      if (frame !== undefined) this.#events.frame(frame);
    });
    const over = (code: number) => {
      this.#gone.resolve();
      this.#closed(code || NO_CODE);
    };
    let isOpen = false;
    websocket.addEventListener("open", () => {
      isOpen = true;
    });
    // Node 22 tells nothing else of an attempt that failed.
    websocket.addEventListener("error", () => isOpen || over(NO_CODE));
    websocket.addEventListener("close", ({ code }) => over(code));
  }

  send(text: string): void {
    const websocket = this.#socket?.websocket;
    if (websocket?.readyState === WebSocket.OPEN) websocket.send(text);
  }

  /** No event follows. Resolves when the socket is gone; where the other end does not answer the close, it is cut off. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#socket === undefined) return;
    const { websocket, cut } = this.#socket;
    websocket.close();
    const timer = setTimeout(() => {
      cut();
      this.#gone.resolve();
    }, CLOSE_WITHIN_MS);
    await this.#gone.promise;
    clearTimeout(timer);
  }

  #closed(code: number): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#events.closed(code, this.#socket?.failure());
  }
}
