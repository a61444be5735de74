import type { Duplex } from "node:stream";
import { CLOSE_CODES, type ErrorCode } from "protocol/contract/errors.ts";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type { LimitName } from "runtime/metrics/catalogue.ts";
import type WebSocket from "ws";
import type { AddressCounts } from "./connection-quota.ts";
import { errorFrame, helloFrame } from "./frames.ts";
import { Outbox, type OutboxOwner } from "./outbox.ts";
import type { Outboxes, OutboxLimit } from "./outboxes.ts";
import { Ownership } from "./ownership.ts";
import type { TokenBuckets } from "./token-bucket.ts";

export type CloseCode = (typeof CLOSE_CODES)[keyof typeof CLOSE_CODES];

export interface ConnectionOptions {
  readonly id: string;
  readonly socket: WebSocket;
  /** The stream under the socket. */
  readonly stream: Duplex;
  readonly addressCounts: AddressCounts;
}

/** What is the same for all connections of a pod. */
export interface ConnectionContext {
  /** Of envelopes and pings. */
  readonly rateLimit: TokenBuckets;
  /** What waits for clients that read slowly. */
  readonly outboxes: Outboxes;
  /** What `hello` says of the connector that the relay hands out. */
  readonly connectorVersion: string | undefined;
  readonly events: ConnectionEvents;
}

export interface ConnectionEvents {
  readonly text: (connection: Connection, text: string) => void;
  /** The first valid envelope came in. */
  readonly registered: (connection: Connection) => void;
  /** An error frame is sent that answers no envelope. */
  readonly refused: (code: ErrorCode) => void;
  /** A limit against abuse refused something or closed the connection. */
  readonly limitReached: (limit: LimitName) => void;
  /** Its agents can no longer be delivered to, or can again. */
  readonly congestionChanged: (connection: Connection) => void;
  /** The end is decided: nothing is taken in or delivered any more. */
  readonly closing: (connection: Connection) => void;
  /** The socket is gone. @param code the close code of this side if it closed, else what the client or ws says. */
  readonly closed: (connection: Connection, code: number) => void;
}

/** Why a connection is not read for a while. */
export type PauseReason = "full_intake" | "draining";

/** Takes in the texts of one connection while any envelope of it is in flight. */
export interface ConnectionIntake {
  receive(text: string): void;
}

/** The property of a socket that holds its connection, so that all sockets share one set of listeners. */
const CONNECTION = Symbol("connection");

function connectionOf(socket: WebSocket): Connection {
  return (socket as WebSocket & { [CONNECTION]: Connection })[CONNECTION];
}

/**
 * One websocket: its frames, its limits, its end. Knows the socket, not Redis. A pod has very many: a connection holds
 * nothing that is the same for all. Source: docs/protocol.md#frames.
 */
export class Connection implements OutboxOwner {
  readonly id: string;
  readonly agents: Ownership;
  /** Of its client address, for the quota. */
  readonly addressCounts: AddressCounts;
  /** Undefined while nothing is in flight. */
  intake: ConnectionIntake | undefined;
  readonly #context: ConnectionContext;
  readonly #socket: WebSocket;
  readonly #outbox: Outbox;
  /** When the token bucket of its rate limit is full again, monotonic ms. */
  #bucketFullAt = 0;
  /** Undefined from the first valid envelope on. */
  #registerTimer: NodeJS.Timeout | undefined;
  #refusalsInARow = 0;
  /** Undefined until the first pause. */
  #pausedFor: Set<PauseReason> | undefined;
  #unansweredPings = 0;
  #closing = false;
  #closedWith: number | undefined;

  constructor(context: ConnectionContext, { id, socket, stream, addressCounts }: ConnectionOptions) {
    this.id = id;
    this.agents = new Ownership(id);
    this.addressCounts = addressCounts;
    this.#context = context;
    this.#socket = Object.assign(socket, { [CONNECTION]: this });
    this.#outbox = new Outbox(this, context.outboxes, socket, stream);
  }

  /** True from the moment that a close is decided; nothing is sent or taken in after it. */
  get isClosing(): boolean {
    return this.#closing || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** True while it reads too slowly for anything new to be promised to it. Source: docs/protocol.md#slow-readers. */
  get isCongested(): boolean {
    return this.#outbox.isCongested;
  }

  /** True from the moment that its pod lets it go: it keeps what it has until its routes are released, and gets nothing new. */
  get isDraining(): boolean {
    return this.#pausedFor?.has("draining") ?? false;
  }

  open(): void {
    const { message, pong, ping, error, close } = Connection.#listeners;
    this.#socket.on("message", message).on("pong", pong).on("ping", ping).on("error", error).on("close", close);
    this.#registerTimer = setTimeout(() => this.#timeOut(), CONNECTION_LIMITS.registerWithinMs);
    this.send(helloFrame(this.id, Date.now(), this.#context.connectorVersion));
  }

  /** False when the connection is closing. */
  send(text: string): boolean {
    if (this.isClosing) return false;
    this.#outbox.send(text);
    return true;
  }

  congestionChanged(): void {
    this.#context.events.congestionChanged(this);
  }

  /** A client that reads too slowly is disconnected rather than held in memory. */
  readsTooSlowly(limit: OutboxLimit): void {
    this.#closeFor(limit, CLOSE_CODES.slowConsumer);
  }

  /** Takes a token of the rate limit. Returns 0, or the ms until there is one. */
  takeToken(): number {
    const { rateLimit, events } = this.#context;
    const now = performance.now();
    const retryAfterMs = rateLimit.wait(this.#bucketFullAt, now);
    if (retryAfterMs > 0) events.limitReached("envelopes");
    else this.#bucketFullAt = rateLimit.take(this.#bucketFullAt, now);
    return retryAfterMs;
  }

  /** An envelope was accepted, or refused only because Redis is unavailable. */
  noteValid(): void {
    this.#refusalsInARow = 0;
    if (this.#registerTimer === undefined) return;
    clearTimeout(this.#registerTimer);
    this.#registerTimer = undefined;
    this.#context.events.registered(this);
  }

  /** An envelope was refused; too many in a row close the connection. */
  noteRefusal(): void {
    this.#refusalsInARow += 1;
    if (this.#refusalsInARow >= CONNECTION_LIMITS.maxRefusalsInARow) this.#closeFor("refusals_in_a_row");
  }

  /**
   * Stops reading from the socket: what the client sends waits in the kernel, and then at the client. A closing connection
   * is read, for the client's answer to the close.
   */
  pause(reason: PauseReason): void {
    if (this.isClosing) return;
    this.#pausedFor ??= new Set();
    this.#pausedFor.add(reason);
    this.#socket.pause();
  }

  /** Reads from the socket again when no other reason against it is left. */
  resume(reason: PauseReason): void {
    if (this.#pausedFor?.delete(reason) && this.#pausedFor.size === 0) this.#socket.resume();
  }

  /** Asks whether the client is there; one that left two pings unanswered is disconnected. */
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
    // Each ping costs a pong, so pings and envelopes share one rate limit.
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
      connection.#context.events.closed(connection, connection.#closedWith ?? code);
    },
  };

  #receive(data: Buffer, isBinary: boolean): void {
    this.#unansweredPings = 0;
    if (isBinary) this.close(CLOSE_CODES.binaryFrame);
    else if (!this.isClosing) this.#context.events.text(this, data.toString());
  }

  /** A client that sent no valid envelope in time is told so: the close code alone would not say what it did wrong. */
  #timeOut(): void {
    if (this.send(errorFrame("register_timeout", {}))) this.#context.events.refused("register_timeout");
    this.#closeFor("register_within");
  }

  #closeFor(limit: LimitName, code: CloseCode = CLOSE_CODES.policy): void {
    if (!this.#closing) this.#context.events.limitReached(limit);
    this.close(code);
  }

  #end(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#outbox.close();
    clearTimeout(this.#registerTimer);
    this.#context.events.closing(this);
  }
}
