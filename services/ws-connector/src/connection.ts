import type { Duplex } from "node:stream";
import { CLOSE_CODES } from "@agent-relay/shared/contract/errors.ts";
import { CONNECTION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type WebSocket from "ws";
import { helloFrame } from "./frames.ts";
import { Outbox } from "./outbox.ts";
import { Ownership } from "./ownership.ts";
import { TokenBucket } from "./token-bucket.ts";

export type CloseCode = (typeof CLOSE_CODES)[keyof typeof CLOSE_CODES];

export interface ConnectionOptions {
  readonly id: string;
  readonly socket: WebSocket;
  /** The stream under the socket. */
  readonly stream: Duplex;
  readonly envelopesPerSecond: number;
  readonly outboxBytes: number;
}

/** What a connection tells its owner. */
export interface ConnectionEvents {
  readonly text: (text: string) => void;
  /** The end is decided: nothing is taken in or delivered any more. */
  readonly closing: () => void;
  /** The socket is gone. @param code why: what this side closed it with, else what the other side or ws says. */
  readonly closed: (code: number) => void;
}

/**
 * One websocket: its frames, its limits, its end. Knows the socket, not Redis.
 * Source: protocol, section 6.
 */
export class Connection {
  readonly id: string;
  readonly agents: Ownership;
  readonly #socket: WebSocket;
  readonly #outbox: Outbox;
  readonly #bucket: TokenBucket;
  readonly #registerTimer: NodeJS.Timeout;
  #refusalsInARow = 0;
  #unansweredPings = 0;
  #closing = false;
  #closedWith: number | undefined;
  #events: ConnectionEvents | undefined;

  constructor(options: ConnectionOptions) {
    this.id = options.id;
    this.agents = new Ownership(options.id);
    this.#socket = options.socket;
    this.#outbox = new Outbox({
      socket: options.socket,
      stream: options.stream,
      maxBytes: options.outboxBytes,
      overflow: () => this.close(CLOSE_CODES.slowConsumer),
    });
    const { envelopesPerSecond } = options;
    const burst = envelopesPerSecond * CONNECTION_LIMITS.envelopeBurstSeconds;
    this.#bucket = new TokenBucket(envelopesPerSecond, burst, performance.now());
    this.#registerTimer = setTimeout(() => this.close(CLOSE_CODES.policy), CONNECTION_LIMITS.registerWithinMs);
  }

  /** True from the moment that a close is decided; nothing is sent or taken in after it. */
  get isClosing(): boolean {
    return this.#closing || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Bytes that wait to be sent. */
  get outboxBytes(): number {
    return this.#outbox.bytes;
  }

  open(events: ConnectionEvents): void {
    this.#events = events;
    const socket = this.#socket;
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      this.#unansweredPings = 0;
      if (isBinary) this.close(CLOSE_CODES.binaryFrame);
      else if (!this.isClosing) events.text(data.toString());
    });
    socket.on("pong", () => {
      this.#unansweredPings = 0;
    });
    // Each ping costs a pong: a flood of them draws on the same allowance as envelopes.
    socket.on("ping", () => {
      if (this.takeToken() > 0) this.close(CLOSE_CODES.policy);
    });
    // ws closes the socket by itself, with the code that RFC 6455 asks for.
    socket.on("error", () => this.#end());
    socket.once("close", (code: number) => {
      this.#end();
      events.closed(this.#closedWith ?? code);
    });
    this.send(helloFrame(this.id, Date.now()));
  }

  /** False when it could not be taken: the connection is closing. */
  send(text: string): boolean {
    return !this.#closing && this.#outbox.send(text);
  }

  /** Takes one envelope's allowance. Returns 0, or the ms until there is one. */
  takeToken(): number {
    return this.#bucket.take(performance.now());
  }

  /** A verified envelope came in, whatever became of it. */
  noteValid(): void {
    this.#refusalsInARow = 0;
    clearTimeout(this.#registerTimer);
  }

  /** An envelope was refused; so many in a row end the connection. */
  noteRefusal(): void {
    this.#refusalsInARow += 1;
    if (this.#refusalsInARow >= CONNECTION_LIMITS.maxRefusalsInARow) this.close(CLOSE_CODES.policy);
  }

  /** Stops reading while too much of this connection is under way; what the client sends waits in its own kernel. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Asks whether the client is there; one that left two pings unanswered is cut off. */
  ping(): void {
    if (this.isClosing) return;
    if (this.#unansweredPings >= CONNECTION_LIMITS.maxUnansweredPings) {
      this.close(CLOSE_CODES.slowConsumer);
      return;
    }
    this.#unansweredPings += 1;
    this.#socket.ping();
  }

  close({ code, reason }: CloseCode): void {
    if (this.#closing) return;
    this.#closedWith = code;
    this.#end();
    this.#socket.resume();
    this.#socket.close(code, reason);
  }

  #end(): void {
    if (this.#closing) return;
    this.#closing = true;
    clearTimeout(this.#registerTimer);
    this.#events?.closing();
  }
}
