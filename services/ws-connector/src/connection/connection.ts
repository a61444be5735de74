import type { Duplex } from "node:stream";
import { CLOSE_CODES, type CloseCode } from "relay-protocol/wire/close-codes.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { type Principal, rateHoldersOf } from "relay-window/limits/principals.ts";
import type WebSocket from "ws";
import type { ConnectionCredentials } from "../agents/credentials.ts";
import { Ownership } from "../agents/ownership.ts";
import type { AddressCounts } from "../throttle/connection-quota.ts";
import { type PauseReason, ReadPause, type ReadPauseOwner } from "../throttle/read-pause.ts";
import { Throttle, type ThrottleContext, type ThrottleOwner } from "../throttle/throttle.ts";
import { errorFrame, type Greeting, helloFrame } from "./frames.ts";
import { Outbox, type OutboxBudget, type OutboxLimit, type OutboxOwner } from "./outbox.ts";

export interface ConnectionOptions {
  readonly id: string;
  readonly socket: WebSocket;
  /** The stream under the socket. */
  readonly stream: Duplex;
  readonly addressCounts: AddressCounts;
}

/** The parts that all connections of a pod share. */
export interface ConnectionContext {
  readonly throttle: ThrottleContext;
  /** Frames that wait for clients that read slowly. */
  readonly outboxBudget: OutboxBudget;
  readonly greeting: Greeting;
  readonly events: ConnectionEvents;
}

export interface ConnectionEvents {
  readonly text: (connection: Connection, text: string) => void;
  /** The first valid envelope came in. */
  readonly registered: (connection: Connection) => void;
  /** The connection sends an error frame that answers no envelope. */
  readonly refused: (code: ErrorCode) => void;
  /**
   * A limit against abuse paused or closed the connection.
   * @param principal the principal that reached the limit. Undefined before a register.
   */
  readonly limitReached: (limit: LimitName, principal: Principal | undefined) => void;
  /** The connection's agents can no longer get deliveries, or can again. */
  readonly congestionChanged: (connection: Connection) => void;
  /** The connection begins to close. From now on it takes in and delivers nothing. */
  readonly closing: (connection: Connection) => void;
  /** The socket is gone. @param code the relay's if the relay closed; otherwise from the client or ws. */
  readonly closed: (connection: Connection, code: number) => void;
}

/** Extra time to register, in ms, while a text of the connection waits for its turn or its answer. */
const TURN_RECHECK_MS = 1000;

/** Checks per ping. The first check may come directly after a frame, so the first ping needs one check more. */
const CHECKS_A_PING = CONNECTION_LIMITS.pingIntervalMs / CONNECTION_LIMITS.silenceCheckMs;

/**
 * One websocket: its frames, its limits, its end. A connection knows the socket, not Redis. A pod has very many
 * connections, so `ConnectionContext` holds the parts that they share. Source: docs/protocol.md#frames.
 */
export class Connection implements OutboxOwner, ThrottleOwner, ReadPauseOwner, SocketListener {
  readonly id: string;
  readonly agents: Ownership;
  /** The counts of the client address, for the quota. */
  readonly addressCounts: AddressCounts;
  /** Undefined until a register presents a credential. */
  credentials: ConnectionCredentials | undefined;
  /** Undefined while no envelope of the connection is in flight. @param cameAt monotonic ms. */
  intake: { receive(text: string, cameAt: number): void } | undefined;
  readonly #context: ConnectionContext;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** The last ping without an answer yet. */
  #ping: Buffer | undefined;
  readonly #outbox: Outbox;
  readonly #throttle: Throttle;
  readonly #readPause: ReadPause;
  /** Undefined from the first valid envelope on. */
  #registerTimer: NodeJS.Timeout | undefined;
  #principal: Principal | undefined;
  #refusalsInARow = 0;
  /** Consecutive checks without a frame. */
  #silentChecks = 0;
  /** Undefined until the connection begins to close. */
  #closeHandshake: CloseHandshake | undefined;

  constructor(context: ConnectionContext, { id, socket, stream, addressCounts }: ConnectionOptions) {
    this.id = id;
    this.agents = new Ownership(id);
    this.addressCounts = addressCounts;
    this.#context = context;
    this.#socket = socket;
    this.#stream = stream;
    this.#outbox = new Outbox(this, context.outboxBudget, socket, stream);
    this.#throttle = new Throttle(this, context.throttle);
    this.#readPause = new ReadPause(this, socket, stream);
  }

  /** True as soon as the connection begins to close. A closing connection sends and takes in nothing. */
  get isClosing(): boolean {
    return this.#closeHandshake !== undefined || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** The key or issuer of the first valid envelope. It answers for the connection. Undefined before that envelope. */
  get principal(): Principal | undefined {
    return this.#principal;
  }

  /** True while the client reads too slowly to get new deliveries. Source: docs/protocol.md#slow-readers. */
  get isCongested(): boolean {
    return this.#outbox.isCongested;
  }

  /**
   * True once the pod drains the connection. It keeps its agents until their routes are released, and gets no new
   * agents.
   */
  get isDraining(): boolean {
    return this.#readPause.isPausedFor("draining");
  }

  open(): void {
    listenTo(this.#socket, this.#stream, this);
    this.#registerTimer = setTimeout(() => this.#timeOut(), CONNECTION_LIMITS.registerWithinMs);
    this.send(helloFrame(this.id, Date.now(), this.#context.greeting));
  }

  /** @returns false if the connection is closing. */
  send(text: string): boolean {
    if (this.isClosing) return false;
    this.#outbox.send(text);
    return true;
  }

  congestionChanged(): void {
    this.#context.events.congestionChanged(this);
  }

  /**
   * Disconnects a client that reads too slowly, because its frames would fill the memory. Frames that wait before a
   * close also count.
   */
  readsTooSlowly(limit: OutboxLimit): void {
    this.limitReached(limit);
    this.closeNow(CLOSE_CODES.slowConsumer);
  }

  /** Called as soon as the limits allow, in the order of arrival. */
  takeIn(text: string): void {
    this.#context.events.text(this, text);
  }

  /** Nothing of this connection is in flight. */
  allAnswered(): void {
    this.intake = undefined;
    this.#throttle.answered();
  }

  /** The relay accepted an envelope of this agent, or refused it only because it has no room now. */
  noteValid(principal: Principal, agent: string): void {
    this.#refusalsInARow = 0;
    this.#principal ??= principal;
    if (this.#registerTimer === undefined) return;
    clearTimeout(this.#registerTimer);
    this.#registerTimer = undefined;
    this.#throttle.registered(rateHoldersOf(principal, agent));
    this.#context.events.registered(this);
  }

  /** This principal signed an envelope of an agent of the connection. @param text the verified text. */
  noteSigner(principal: Principal, agent: string, text: string): void {
    this.#throttle.sentBy(principal, agent, text);
  }

  /** The relay refused an envelope. Too many refusals in a row close the connection. */
  noteRefusal(): void {
    this.#refusalsInARow += 1;
    if (this.#refusalsInARow >= CONNECTION_LIMITS.maxRefusalsInARow) this.closeFor("refusals_in_a_row");
  }

  /** Has no effect on a closing connection: the pod reads it for the client's answer to the close. */
  pause(reason: PauseReason): void {
    if (!this.isClosing) this.#readPause.pause(reason);
  }

  resume(reason: PauseReason): void {
    if (!this.isClosing) this.#readPause.resume(reason);
  }

  /**
   * Pings a silent client, and disconnects a client that left two pings unanswered. A paused client does not count as
   * silent, because the pod does not read its frames.
   */
  checkSilence(): void {
    if (this.isClosing) {
      // The client may have ended its side without a close frame.
      this.#end();
      return;
    }
    this.#silentChecks = this.#readPause.isPaused ? 0 : this.#silentChecks + 1;
    const pings = (this.#silentChecks - 1) / CHECKS_A_PING;
    if (pings < 1 || !Number.isInteger(pings)) return;
    if (pings > CONNECTION_LIMITS.maxUnansweredPings) this.closeNow(CLOSE_CODES.slowConsumer);
    else this.#socket.ping();
  }

  /** @param principal whom the limit counts for. By default the principal that answers for the connection. */
  limitReached(limit: LimitName, principal = this.#principal): void {
    this.#context.events.limitReached(limit, principal);
  }

  /** Ends a connection that reached a limit. */
  closeFor(limit: LimitName, code: CloseCode = CLOSE_CODES.policy): void {
    if (this.#closeHandshake === undefined) this.limitReached(limit);
    this.close(code);
  }

  /**
   * Ends the connection once the kernel has taken every frame that was sent before. The close frame starts the close
   * timeout of ws, so it follows only then. Until then the connection is paused, and the outbox disconnects a client
   * that does not read. A registered client has the whole timeout for its answer. If a client wrote to a destroyed
   * socket, it would lose unread frames.
   */
  close(code: CloseCode): void {
    if (this.#closeHandshake === undefined) this.#readPause.pause("closing");
    const closing = this.#end(code);
    this.#outbox.whenTaken(() => {
      closing.sendClose();
      if (this.#principal === undefined) closing.disconnectSoon();
    });
  }

  /** Ends the connection at once. The client loses the frames that it does not read within a second. */
  closeNow(code: CloseCode): void {
    const closing = this.#end(code);
    this.#outbox.close();
    closing.sendClose();
    closing.disconnectSoon();
  }

  /** Resolves when the socket is gone, for any reason. */
  async gone(): Promise<void> {
    if (this.#socket.readyState === this.#socket.CLOSED) return;
    await new Promise((resolve) => this.#socket.once("close", resolve));
  }

  message(data: Buffer, isBinary: boolean): void {
    if (!this.#frameCame()) return;
    if (isBinary) this.close(CLOSE_CODES.binaryFrame);
    else this.#throttle.text(data.toString());
  }

  ping(data: Buffer): void {
    if (!this.#frameCame()) return;
    this.#ping = data;
    this.#throttle.pingOrPong();
  }

  pong(): void {
    if (this.#frameCame()) this.#throttle.pingOrPong();
  }

  data(chunk: Buffer): void {
    if (!this.isClosing && !this.#throttle.payForChunk(chunk.length)) {
      this.#readPause.putBack(chunk);
      return;
    }
    this.#readPause.handOver(chunk);
    if (this.#socket.readyState === this.#socket.OPEN) {
      if (this.#closeHandshake === undefined) this.#throttle.noteBytes(chunk.length);
      return;
    }
    this.#end().count(chunk.length);
  }

  /** Answers the last ping of a chunk. This answers all pings of the chunk. Source: RFC 6455, section 5.5.3. */
  handedOver(): void {
    const ping = this.#ping;
    this.#ping = undefined;
    // The client sent a close frame. It would not read a delivery that the relay accepts before the socket is gone.
    if (this.#socket.readyState !== this.#socket.OPEN) this.#end();
    if (ping === undefined || this.isClosing) return;
    this.#socket.pong(ping);
    this.#outbox.count();
  }

  /**
   * A closing connection ignores the frame. It also skips the rest of the chunk, unless its client is registered.
   * @returns false if the connection is closing.
   */
  #frameCame(): boolean {
    this.#silentChecks = 0;
    this.#readPause.frame();
    if (this.isClosing && this.#principal === undefined) this.#readPause.passOver();
    return !this.isClosing;
  }

  failed(): void {
    this.#end();
    this.#outbox.close();
  }

  closed(code: number): void {
    this.failed();
    this.#context.events.closed(this, this.#closeHandshake?.code?.code ?? code);
  }

  /**
   * Closes a connection without a valid envelope. An error frame tells the reason, because the close code alone does
   * not. A text that waits for its turn or its answer may be the register.
   */
  #timeOut(): void {
    if (this.#throttle.hasPendingText) {
      this.#registerTimer = setTimeout(() => this.#timeOut(), TURN_RECHECK_MS);
      return;
    }
    if (this.send(errorFrame("register_timeout", {}))) this.#context.events.refused("register_timeout");
    this.closeFor("register_within");
  }

  /**
   * @param code undefined if the client or ws ends the connection. Frames that wait for the client may be lost then.
   */
  #end(code?: CloseCode): CloseHandshake {
    if (this.#closeHandshake !== undefined) return this.#closeHandshake;
    this.#closeHandshake = new CloseHandshake(this.#socket, this.#readPause, code);
    if (code === undefined && this.#socket.readyState !== this.#socket.CLOSED) this.#closeHandshake.disconnectSoon();
    clearTimeout(this.#registerTimer);
    this.#throttle.stop();
    this.#context.events.closing(this);
    return this.#closeHandshake;
  }
}

/** The end of one connection: the close frame, the bytes that are read after it, and the end of the socket. */
class CloseHandshake {
  readonly #socket: WebSocket;
  readonly #readPause: ReadPause;
  /** Undefined if the client or ws ended the connection. */
  readonly code: CloseCode | undefined;
  #bytes = 0;

  constructor(socket: WebSocket, readPause: ReadPause, code: CloseCode | undefined) {
    this.#socket = socket;
    this.#readPause = readPause;
    this.code = code;
  }

  /** Writes the close frame, and reads again because ws waits for the client's answer. */
  sendClose(): void {
    if (this.code !== undefined) this.#socket.close(this.code.code, this.code.reason);
    this.#readPause.resumeAll();
  }

  /** Destroys the socket after a second, so that the close frame arrives before a reset. May be called again. */
  disconnectSoon(): void {
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }

  /**
   * Counts bytes that came after the close frame. If a client keeps sending, the pod stops reading it: a closed
   * connection must not cost more than an open connection. The socket stays open, because the client may still read the
   * close frame.
   */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > CONNECTION_LIMITS.closingBytes) this.#readPause.pause("closing");
  }
}

/** Gets the events of a websocket and of the stream under it. */
interface SocketListener {
  message(data: Buffer, isBinary: boolean): void;
  ping(data: Buffer): void;
  pong(): void;
  /** A chunk came from the stream. The listener must pass it to ws. */
  data(chunk: Buffer): void;
  /** The socket broke, or a frame was invalid. ws closes the socket itself, with the code that RFC 6455 requires. */
  failed(): void;
  /** The socket was closed. @param code from the client or ws. */
  closed(code: number): void;
}

/** The property of a socket and its stream that holds their listener. */
const LISTENER = Symbol("listener");

/**
 * Event handlers that all sockets share, with the socket as `this`. A closure for each socket would take too much
 * memory.
 */
const SOCKET_EVENTS = {
  message(this: WebSocket, data: Buffer, isBinary: boolean) {
    listenerOf(this).message(data, isBinary);
  },
  ping(this: WebSocket, data: Buffer) {
    listenerOf(this).ping(data);
  },
  pong(this: WebSocket) {
    listenerOf(this).pong();
  },
  error(this: WebSocket) {
    listenerOf(this).failed();
  },
  close(this: WebSocket, code: number) {
    listenerOf(this).closed(code);
  },
};

/** Replaces the listener of ws. The listener of ws would handle every frame of a chunk at once. */
function data(this: Duplex, chunk: Buffer): void {
  listenerOf(this).data(chunk);
}

/** @param stream the stream under the socket. */
function listenTo(socket: WebSocket, stream: Duplex, listener: SocketListener): void {
  Object.assign(socket, { [LISTENER]: listener });
  Object.assign(stream, { [LISTENER]: listener });
  const { message, ping, pong, error, close } = SOCKET_EVENTS;
  socket.on("message", message).on("ping", ping).on("pong", pong).on("error", error).on("close", close);
  stream.removeAllListeners("data").on("data", data);
}

function listenerOf(socket: WebSocket | Duplex): SocketListener {
  return (socket as unknown as { [LISTENER]: SocketListener })[LISTENER];
}
