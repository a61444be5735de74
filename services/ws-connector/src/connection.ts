import type { Duplex } from "node:stream";
import { CLOSE_CODES } from "@agent-relay/shared/contract/errors.ts";
import { CONNECTION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { LimitName } from "@agent-relay/shared/metrics/catalogue.ts";
import type WebSocket from "ws";
import type { Caller } from "./admission.ts";
import { helloFrame } from "./frames.ts";
import type { Intake } from "./intake.ts";
import { Outbox } from "./outbox.ts";
import { Ownership } from "./ownership.ts";
import type { TokenBuckets } from "./token-bucket.ts";

export type CloseCode = (typeof CLOSE_CODES)[keyof typeof CLOSE_CODES];

export interface ConnectionOptions {
  readonly id: string;
  readonly socket: WebSocket;
  /** The stream under the socket. */
  readonly stream: Duplex;
  readonly caller: Caller;
}

/** What holds for all connections of a pod. */
export interface ConnectionTerms {
  /** What a client may send: envelopes, and pings. */
  readonly allowance: TokenBuckets;
  readonly outboxBytes: number;
  readonly events: ConnectionEvents;
}

/** What a connection tells its owner. */
export interface ConnectionEvents {
  readonly text: (connection: Connection, text: string) => void;
  /** The first valid envelope came in. */
  readonly proven: (connection: Connection) => void;
  /** A limit against abuse struck. */
  readonly struck: (limit: LimitName) => void;
  /** The end is decided: nothing is taken in or delivered any more. */
  readonly closing: (connection: Connection) => void;
  /** The socket is gone. @param code why: what this side closed it with, else what the other side or ws says. */
  readonly closed: (connection: Connection, code: number) => void;
}

/** Where a socket has its connection, so that one set of listeners serves all. */
const CONNECTION = Symbol("connection");

function connectionOf(socket: WebSocket): Connection {
  return (socket as WebSocket & { [CONNECTION]: Connection })[CONNECTION];
}

/**
 * One websocket: its frames, its limits, its end. Knows the socket, not Redis. A pod has very many: a connection holds
 * nothing that is the same for all. Source: protocol, section 6.
 */
export class Connection {
  readonly id: string;
  readonly agents: Ownership;
  /** What admission counts it under. */
  readonly caller: Caller;
  /** What its envelopes go through, while any are under way. */
  intake: Intake | undefined;
  readonly #terms: ConnectionTerms;
  readonly #socket: WebSocket;
  readonly #outbox: Outbox;
  /** When the allowance is full again. */
  #allowanceFullAt = 0;
  /** Undefined from the first valid envelope on. */
  #registerTimer: NodeJS.Timeout | undefined;
  #refusalsInARow = 0;
  #unansweredPings = 0;
  #closing = false;
  #closedWith: number | undefined;

  constructor(terms: ConnectionTerms, { id, socket, stream, caller }: ConnectionOptions) {
    this.id = id;
    this.agents = new Ownership(id);
    this.caller = caller;
    this.#terms = terms;
    this.#socket = Object.assign(socket, { [CONNECTION]: this });
    this.#outbox = new Outbox(socket, stream);
    this.#registerTimer = setTimeout(() => this.#breach("register_within"), CONNECTION_LIMITS.registerWithinMs);
  }

  /** True from the moment that a close is decided; nothing is sent or taken in after it. */
  get isClosing(): boolean {
    return this.#closing || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Bytes that wait to be sent. */
  get outboxBytes(): number {
    return this.#outbox.bytes;
  }

  open(): void {
    const { message, pong, ping, error, close } = Connection.#listeners;
    this.#socket.on("message", message).on("pong", pong).on("ping", ping).on("error", error).on("close", close);
    this.send(helloFrame(this.id, Date.now()));
  }

  /**
   * False when it could not be taken: the connection is closing. What waits is bounded: a client that reads too slowly
   * is cut off rather than held in memory.
   */
  send(text: string): boolean {
    if (this.isClosing) return false;
    if (this.#outbox.bytes > this.#terms.outboxBytes) {
      this.close(CLOSE_CODES.slowConsumer);
      return false;
    }
    this.#outbox.send(text);
    return true;
  }

  /** Takes one envelope's allowance. Returns 0, or the ms until there is one. */
  takeToken(): number {
    const { allowance, events } = this.#terms;
    const now = performance.now();
    const retryAfterMs = allowance.wait(this.#allowanceFullAt, now);
    if (retryAfterMs > 0) events.struck("envelopes");
    else this.#allowanceFullAt = allowance.take(this.#allowanceFullAt, now);
    return retryAfterMs;
  }

  /** A verified envelope came in, whatever became of it. */
  noteValid(): void {
    this.#refusalsInARow = 0;
    if (this.#registerTimer === undefined) return;
    clearTimeout(this.#registerTimer);
    this.#registerTimer = undefined;
    this.#terms.events.proven(this);
  }

  /** An envelope was refused; so many in a row end the connection. */
  noteRefusal(): void {
    this.#refusalsInARow += 1;
    if (this.#refusalsInARow >= CONNECTION_LIMITS.maxRefusalsInARow) this.#breach("refusals_in_a_row");
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
    this.#outbox.flush();
    this.#end();
    this.#socket.resume();
    this.#socket.close(code, reason);
  }

  /** Listeners for the socket, each called with the socket as `this`. */
  static readonly #listeners = {
    message(this: WebSocket, data: Buffer, isBinary: boolean) {
      connectionOf(this).#receive(data, isBinary);
    },
    pong(this: WebSocket) {
      connectionOf(this).#unansweredPings = 0;
    },
    // Each ping costs a pong: a flood of them draws on the same allowance as envelopes.
    ping(this: WebSocket) {
      const connection = connectionOf(this);
      if (connection.takeToken() > 0) connection.close(CLOSE_CODES.policy);
    },
    // ws closes the socket by itself, with the code that RFC 6455 asks for.
    error(this: WebSocket) {
      connectionOf(this).#end();
    },
    close(this: WebSocket, code: number) {
      const connection = connectionOf(this);
      connection.#end();
      connection.#terms.events.closed(connection, connection.#closedWith ?? code);
    },
  };

  #receive(data: Buffer, isBinary: boolean): void {
    this.#unansweredPings = 0;
    if (isBinary) this.close(CLOSE_CODES.binaryFrame);
    else if (!this.isClosing) this.#terms.events.text(this, data.toString());
  }

  #breach(limit: LimitName): void {
    if (!this.#closing) this.#terms.events.struck(limit);
    this.close(CLOSE_CODES.policy);
  }

  #end(): void {
    if (this.#closing) return;
    this.#closing = true;
    clearTimeout(this.#registerTimer);
    this.#terms.events.closing(this);
  }
}
