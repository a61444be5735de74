import type { CloseCode } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type WebSocket from "ws";
import type { Reading } from "../throttle/reading.ts";

/** The end of one connection: its close frame, how much is read behind that frame, and when the socket is destroyed. */
export class Closing {
  readonly #socket: WebSocket;
  readonly #reading: Reading;
  /** Undefined when the client or ws ended the connection. */
  readonly code: CloseCode | undefined;
  #bytes = 0;

  constructor(socket: WebSocket, reading: Reading, code: CloseCode | undefined) {
    this.#socket = socket;
    this.#reading = reading;
    this.code = code;
  }

  /** Writes the close frame, and reads again: ws waits for the client's answer. */
  sendClose(): void {
    if (this.code !== undefined) this.#socket.close(this.code.code, this.code.reason);
    this.#reading.resumeAll();
  }

  /** Destroys the socket after a second, so that the close frame arrives before a reset. May be called again. */
  disconnectSoon(): void {
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }

  /**
   * Counts bytes that came behind the close frame. A client that goes on sending is no longer read for its answer: a closed
   * connection must not cost more than an open one. The socket stays open, since the client may still read the close frame.
   */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > CONNECTION_LIMITS.closingBytes) this.#reading.pause("closing");
  }
}
