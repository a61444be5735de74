import type { Duplex } from "node:stream";
import type WebSocket from "ws";

/**
 * What waits to be sent on one socket, bounded: a client that reads too slowly is cut off rather than held in memory.
 * Frames of one tick leave in one write.
 */
export class Outbox {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #maxBytes: number;
  readonly #overflow: () => void;
  #corked = false;

  /** @param options.stream carries the socket. @param options.overflow called when more than `maxBytes` wait. */
  constructor(options: { socket: WebSocket; stream: Duplex; maxBytes: number; overflow: () => void }) {
    this.#socket = options.socket;
    this.#stream = options.stream;
    this.#maxBytes = options.maxBytes;
    this.#overflow = options.overflow;
  }

  /** Bytes that wait to be sent. */
  get bytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Sends one text frame; false when the socket is closing or its client too slow. */
  send(text: string): boolean {
    if (this.#socket.readyState !== this.#socket.OPEN) return false;
    if (this.bytes > this.#maxBytes) {
      this.#overflow();
      return false;
    }
    this.#cork();
    this.#socket.send(text);
    return true;
  }

  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.#stream.cork();
    process.nextTick(() => {
      this.#corked = false;
      this.#stream.uncork();
    });
  }
}
