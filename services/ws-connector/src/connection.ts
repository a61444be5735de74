import type { Duplex } from "node:stream";
import { CLOSE_CODES, type CloseCode } from "protocol/contract/close-codes.ts";
import type { ErrorCode } from "protocol/contract/errors.ts";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type { LimitName } from "runtime/metrics/catalogue.ts";
import { type Principal, rateHoldersOf } from "window/principal.ts";
import type WebSocket from "ws";
import { Closing } from "./closing.ts";
import type { ConnectionCredentials } from "./connection-credentials.ts";
import type { AddressCounts } from "./connection-quota.ts";
import { errorFrame, type Greeting, helloFrame } from "./frames.ts";
import { Inflow, type InflowContext, type InflowOwner } from "./inflow.ts";
import { Outbox, type OutboxOwner } from "./outbox.ts";
import type { Outboxes, OutboxLimit } from "./outboxes.ts";
import { Ownership } from "./ownership.ts";
import { type PauseReason, Reading, type ReadingOwner } from "./reading.ts";
import { listenTo, type SocketListener } from "./socket-events.ts";

export interface ConnectionOptions {
  readonly id: string;
  readonly socket: WebSocket;
  /** The stream under the socket. */
  readonly stream: Duplex;
  readonly addressCounts: AddressCounts;
}

/** What is the same for all connections of a pod. */
export interface ConnectionContext {
  readonly inflow: InflowContext;
  /** What waits for clients that read slowly. */
  readonly outboxes: Outboxes;
  readonly greeting: Greeting;
  readonly events: ConnectionEvents;
}

export interface ConnectionEvents {
  readonly text: (connection: Connection, text: string) => void;
  /** The first valid envelope came in. */
  readonly registered: (connection: Connection) => void;
  /** An error frame is sent that answers no envelope. */
  readonly refused: (code: ErrorCode) => void;
  /** A limit against abuse paused or closed a connection. @param principal whose it is; undefined while it is nobody's. */
  readonly limitReached: (limit: LimitName, principal: Principal | undefined) => void;
  /** Its agents can no longer be delivered to, or can again. */
  readonly congestionChanged: (connection: Connection) => void;
  /** The end is decided: nothing is taken in or delivered any more. */
  readonly closing: (connection: Connection) => void;
  /** The socket is gone. @param code the close code of this side if it closed, else what the client or ws says. */
  readonly closed: (connection: Connection, code: number) => void;
}

/** How soon a connection is looked at again that is late with its register because its turn has not come. */
const TURN_RECHECK_MS = 1000;

/** The first check may come at once after something was heard: the one after these has seen a whole interval of silence. */
const CHECKS_A_PING = CONNECTION_LIMITS.pingIntervalMs / CONNECTION_LIMITS.silenceCheckMs;

/**
 * One websocket: its frames, its limits, its end. Knows the socket, not Redis. A pod has very many: a connection holds
 * nothing that is the same for all. Source: docs/protocol.md#frames.
 */
export class Connection implements OutboxOwner, InflowOwner, ReadingOwner, SocketListener {
  readonly id: string;
  readonly agents: Ownership;
  /** Of its client address, for the quota. */
  readonly addressCounts: AddressCounts;
  /** Undefined until a register presents one. */
  credentials: ConnectionCredentials | undefined;
  /** Takes its texts in while any envelope of it is in flight, and is undefined while none is. @param cameAt monotonic ms. */
  intake: { receive(text: string, cameAt: number): void } | undefined;
  readonly #context: ConnectionContext;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** The last ping that was not answered. */
  #ping: Buffer | undefined;
  readonly #outbox: Outbox;
  readonly #inflow: Inflow;
  readonly #reading: Reading;
  /** Undefined from the first valid envelope on. */
  #registerTimer: NodeJS.Timeout | undefined;
  #principal: Principal | undefined;
  #refusalsInARow = 0;
  /** How often nothing was heard since the check before. */
  #silentChecks = 0;
  /** Undefined until the end is decided. */
  #closing: Closing | undefined;

  constructor(context: ConnectionContext, { id, socket, stream, addressCounts }: ConnectionOptions) {
    this.id = id;
    this.agents = new Ownership(id);
    this.addressCounts = addressCounts;
    this.#context = context;
    this.#socket = socket;
    this.#stream = stream;
    this.#outbox = new Outbox(this, context.outboxes, socket, stream);
    this.#inflow = new Inflow(this, context.inflow);
    this.#reading = new Reading(this, socket, stream);
  }

  /** True from the moment that a close is decided; nothing is sent or taken in after it. */
  get isClosing(): boolean {
    return this.#closing !== undefined || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** The key or issuer of its first valid envelope, which answers for it. Undefined before that. */
  get principal(): Principal | undefined {
    return this.#principal;
  }

  /** True while it reads too slowly for anything new to be promised to it. Source: docs/protocol.md#slow-readers. */
  get isCongested(): boolean {
    return this.#outbox.isCongested;
  }

  /** True from the moment that its pod lets it go: it keeps what it has until its routes are released, and gets nothing new. */
  get isDraining(): boolean {
    return this.#reading.isPausedFor("draining");
  }

  open(): void {
    listenTo(this.#socket, this.#stream, this);
    this.#registerTimer = setTimeout(() => this.#timeOut(), CONNECTION_LIMITS.registerWithinMs);
    this.send(helloFrame(this.id, Date.now(), this.#context.greeting));
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

  /** A client that reads too slowly is disconnected rather than held in memory, also where it is to read what was promised before its close. */
  readsTooSlowly(limit: OutboxLimit): void {
    this.limitReached(limit);
    this.closeNow(CLOSE_CODES.slowConsumer);
  }

  /** Takes a text in, in the order in which texts came, as soon as the limits allow. */
  takeIn(text: string): void {
    this.#context.events.text(this, text);
  }

  /** Nothing of this connection is in flight. */
  allAnswered(): void {
    this.intake = undefined;
    this.#inflow.answered();
  }

  /** An envelope of this agent was accepted, or refused only because there is no room for it now. */
  noteValid(principal: Principal, agent: string): void {
    this.#refusalsInARow = 0;
    this.#principal ??= principal;
    if (this.#registerTimer === undefined) return;
    clearTimeout(this.#registerTimer);
    this.#registerTimer = undefined;
    this.#inflow.registered(rateHoldersOf(principal, agent));
    this.#context.events.registered(this);
  }

  /** An envelope that was taken in is this principal's, by an agent that the connection has. @param text as it was verified. */
  noteSigner(principal: Principal, agent: string, text: string): void {
    this.#inflow.sentBy(principal, agent, text);
  }

  /** An envelope was refused; too many in a row close the connection. */
  noteRefusal(): void {
    this.#refusalsInARow += 1;
    if (this.#refusalsInARow >= CONNECTION_LIMITS.maxRefusalsInARow) this.closeFor("refusals_in_a_row");
  }

  /** A closing connection is read, for the client's answer to the close. */
  pause(reason: PauseReason): void {
    if (!this.isClosing) this.#reading.pause(reason);
  }

  resume(reason: PauseReason): void {
    if (!this.isClosing) this.#reading.resume(reason);
  }

  /**
   * Asks a silent client whether it is there; one that left two pings unanswered is disconnected. While it is not read nothing is
   * heard from it, and no silence counts.
   */
  checkSilence(): void {
    if (this.isClosing) {
      // Its client may have ended its side without a close frame.
      this.#end();
      return;
    }
    this.#silentChecks = this.#reading.isPaused ? 0 : this.#silentChecks + 1;
    const pings = (this.#silentChecks - 1) / CHECKS_A_PING;
    if (pings < 1 || !Number.isInteger(pings)) return;
    if (pings > CONNECTION_LIMITS.maxUnansweredPings) this.closeNow(CLOSE_CODES.slowConsumer);
    else this.#socket.ping();
  }

  limitReached(limit: LimitName, principal = this.#principal): void {
    this.#context.events.limitReached(limit, principal);
  }

  /** Ends the connection because it reached a limit. */
  closeFor(limit: LimitName, code: CloseCode = CLOSE_CODES.policy): void {
    if (this.#closing === undefined) this.limitReached(limit);
    this.close(code);
  }

  /**
   * Ends the connection. What was sent to it, and so promised, is read first: the close frame follows it, for with that the socket's time
   * runs. Who reads nothing of it for as long as any slow reader may is disconnected. Meanwhile nothing is read of a client that cannot
   * know of its end yet. A registered one may answer late: were it to write to a socket that is gone, it would lose what it has not read.
   */
  close(code: CloseCode): void {
    if (this.#closing === undefined) this.#reading.pauseToClose();
    const closing = this.#end(code);
    this.#outbox.whenTaken(() => {
      closing.sendClose();
      if (this.#principal === undefined) closing.disconnectSoon();
    });
  }

  /** Ends the connection at once: what waits goes with the socket, but for what is read within a second. */
  closeNow(code: CloseCode): void {
    const closing = this.#end(code);
    this.#outbox.flush();
    this.#outbox.close();
    closing.sendClose();
    closing.disconnectSoon();
  }

  /** Resolves when the socket is gone, however it went. */
  async gone(): Promise<void> {
    if (this.#socket.readyState === this.#socket.CLOSED) return;
    await new Promise((resolve) => this.#socket.once("close", resolve));
  }

  message(data: Buffer, isBinary: boolean): void {
    if (this.#ignores()) return;
    if (isBinary) this.close(CLOSE_CODES.binaryFrame);
    else this.#inflow.text(data.toString());
  }

  ping(data: Buffer): void {
    if (this.#ignores()) return;
    this.#ping = data;
    this.#inflow.control();
  }

  pong(): void {
    if (!this.#ignores()) this.#inflow.control();
  }

  data(chunk: Buffer): void {
    if (!this.isClosing && !this.#inflow.admits(chunk.length)) {
      this.#reading.putBack(chunk);
      return;
    }
    this.#reading.handOver(chunk);
    if (this.#socket.readyState === this.#socket.OPEN) {
      if (this.#closing === undefined) this.#inflow.bytes(chunk.length);
      return;
    }
    this.#end().count(chunk.length);
  }

  /** Of the pings that were read at once the last is answered, for all of them. Source: RFC 6455, section 5.5.3. */
  handedOver(): void {
    const ping = this.#ping;
    this.#ping = undefined;
    // A close frame came: its client gets nothing of what would be promised to it until the socket is gone.
    if (this.#socket.readyState !== this.#socket.OPEN) this.#end();
    if (ping === undefined || this.isClosing) return;
    this.#socket.pong(ping);
    this.#outbox.count();
  }

  /** A frame came. True where the connection closes: the rest of the chunk is passed over then, unless its client may answer. */
  #ignores(): boolean {
    this.#silentChecks = 0;
    this.#reading.frame();
    if (this.isClosing && this.#principal === undefined) this.#reading.passOver();
    return this.isClosing;
  }

  failed(): void {
    this.#end();
    this.#outbox.close();
  }

  closed(code: number): void {
    this.failed();
    this.#context.events.closed(this, this.#closing?.code?.code ?? code);
  }

  /**
   * A client that sent no valid envelope in time is told so: the close code alone would not say what it did wrong. One whose
   * text waits for its turn, or for its answer, may have sent it.
   */
  #timeOut(): void {
    if (this.#inflow.isUndecided) {
      this.#registerTimer = setTimeout(() => this.#timeOut(), TURN_RECHECK_MS);
      return;
    }
    if (this.send(errorFrame("register_timeout", {}))) this.#context.events.refused("register_timeout");
    this.closeFor("register_within");
  }

  /** @param code none where the client or ws ends it: what waits for such a client need not be read. */
  #end(code?: CloseCode): Closing {
    if (this.#closing !== undefined) return this.#closing;
    this.#closing = new Closing(this.#socket, this.#reading, code);
    if (code === undefined && this.#socket.readyState !== this.#socket.CLOSED) this.#closing.disconnectSoon();
    clearTimeout(this.#registerTimer);
    this.#inflow.stop();
    this.#context.events.closing(this);
    return this.#closing;
  }
}
