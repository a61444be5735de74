import type { Duplex } from "node:stream";
import type { CloseCode } from "protocol/contract/close-codes.ts";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type WebSocket from "ws";

/** The end of a connection, once it is decided: its close frame, what is read behind it, and when the socket goes. */
export class Closing {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** Undefined where the client or ws decided it. */
  readonly code: CloseCode | undefined;
  #bytes = 0;
  #disconnects = false;

  /** @param stream the one under the socket. */
  constructor(socket: WebSocket, stream: Duplex, code: CloseCode | undefined) {
    this.#socket = socket;
    this.#stream = stream;
    this.code = code;
  }

  /** Writes the close frame, and reads on for the client's answer, for which ws waits. */
  sendClose(): void {
    if (this.code !== undefined) this.#socket.close(this.code.code, this.code.reason);
    this.#socket.resume();
  }

  /** The socket goes after a second, in which the close frame arrives before a reset. */
  disconnectSoon(): void {
    if (this.#disconnects) return;
    this.#disconnects = true;
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }

  /**
   * Has ws leave the chunk that it is at: 64 KiB can be 10,000 frames, each of which it would hand over, closed or not, while every
   * other connection waits. It has no method for it.
   */
  passOver(): void {
    (this.#socket as unknown as { _receiver: { _loop: boolean } })._receiver._loop = false;
  }

  /**
   * Bytes were read behind the close frame: a client that goes on sending is not read for its answer. Without an end to it, a closed
   * connection would cost more than an open one. The socket stays for as long as any client has: it may read the close yet.
   */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > CONNECTION_LIMITS.closingBytes) this.#stream.pause();
  }
}
