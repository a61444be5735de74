import type { Duplex } from "node:stream";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type WebSocket from "ws";

/**
 * What is read of a connection behind a close frame: a client that goes on sending is not read for its answer to it. Without an
 * end to it, a closed connection would cost more than an open one. Its socket stays for a while, so that the close frame arrives
 * before a reset.
 */
export class ClosingReads {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  #bytes = 0;

  constructor(socket: WebSocket, stream: Duplex) {
    this.#socket = socket;
    this.#stream = stream;
  }

  count(bytes: number): void {
    const before = this.#bytes;
    this.#bytes += bytes;
    if (before > CONNECTION_LIMITS.closingBytes || this.#bytes <= CONNECTION_LIMITS.closingBytes) return;
    this.#stream.pause();
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }
}
