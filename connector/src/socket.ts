import { openWebSocket } from "#platform";
import { type Frame, readFrame } from "./frames.ts";
import { CLOSE_WITHIN_MS } from "./limits.ts";
import type { AttemptFailure } from "./network-errors.ts";
import type { PlatformWebSocket } from "./platform/contract.ts";

export interface SocketEvents {
  readonly frame: (frame: Frame) => void;
  /** Once, and not after `close`. @param failure why it was not opened, where that is known. */
  readonly closed: (code: number, failure?: AttemptFailure) => void;
}

/** One websocket of the platform: parsed frames in, texts out. */
export class Socket {
  readonly #url: string;
  readonly #usesProxy: boolean;
  readonly #events: SocketEvents;
  readonly #gone = Promise.withResolvers<void>();
  #websocket: PlatformWebSocket | undefined;
  #closing = false;

  /** @param usesProxy whether the environment's proxy counts. */
  constructor(url: string, usesProxy: boolean, events: SocketEvents) {
    this.#url = url;
    this.#usesProxy = usesProxy;
    this.#events = events;
  }

  open(): void {
    this.#websocket = openWebSocket(this.#url, this.#usesProxy, {
      text: (text) => this.#receive(text),
      closed: (code, failure) => {
        this.#gone.resolve();
        this.#closed(code, failure);
      },
    });
  }

  /** What it fails with if its time is over now, where more is known than that. */
  get silence(): AttemptFailure | undefined {
    return this.#websocket?.silence;
  }

  send(text: string): void {
    this.#websocket?.send(text);
  }

  /** No event follows. Resolves when the socket is gone; where the other end does not answer the close, it is cut off. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#websocket === undefined) return;
    this.#websocket.close();
    const timer = setTimeout(() => this.#websocket?.cut(), CLOSE_WITHIN_MS);
    await this.#gone.promise;
    clearTimeout(timer);
  }

  #receive(text: string): void {
    if (this.#closing) return;
    const frame = readFrame(text);
    if (frame !== undefined) this.#events.frame(frame);
  }

  #closed(code: number, failure?: AttemptFailure): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#events.closed(code, failure);
  }
}
