import type { CloseCode } from "protocol/contract/close-codes.ts";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type WebSocket from "ws";
import type { Reading } from "./reading.ts";

/** The end of a connection, once it is decided: its close frame, what is read behind it, and when the socket goes. */
export class Closing {
  readonly #socket: WebSocket;
  readonly #reading: Reading;
  /** Undefined where the client or ws decided it. */
  readonly code: CloseCode | undefined;
  #bytes = 0;
  #disconnects = false;

  constructor(socket: WebSocket, reading: Reading, code: CloseCode | undefined) {
    this.#socket = socket;
    this.#reading = reading;
    this.code = code;
  }

  /** Writes the close frame, and reads on for the client's answer, for which ws waits. */
  sendClose(): void {
    if (this.code !== undefined) this.#socket.close(this.code.code, this.code.reason);
    this.#reading.readOn();
  }

  /** The socket goes after a second, in which the close frame arrives before a reset. */
  disconnectSoon(): void {
    if (this.#disconnects) return;
    this.#disconnects = true;
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }

  /**
   * Bytes were read behind the close frame: a client that goes on sending is not read for its answer. Without an end to it, a closed
   * connection would cost more than an open one. The socket stays for as long as any client has: it may read the close yet.
   */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > CONNECTION_LIMITS.closingBytes) this.#reading.pauseToClose();
  }
}
