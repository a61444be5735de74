import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type { LimitName } from "runtime/metrics/catalogue.ts";
import type { Principal, RateHolder } from "window/principal.ts";
import { Allowance } from "./allowance.ts";
import { ConnectionRates, type PodRates, type RateWait } from "./connection-rates.ts";
import { Pauses, type PausesOwner } from "./pauses.ts";
import type { Turns, TurnTaker } from "./turns.ts";

/** What is the same for all connections of a pod. */
export interface InflowContext extends PodRates {
  readonly turns: Turns;
  /** The frame for a client that sends too much. */
  readonly slowDownNotice: string;
}

/** Why its inflow keeps a connection from being read: a text waits for its turn, or a rate is used up. */
export type InflowPause = "turn" | "rate";

/** The connection, as far as its inflow needs it. */
export interface InflowOwner {
  readonly isClosing: boolean;
  /** Of its client address. */
  readonly addressCounts: object;
  takeIn(text: string): void;
  /** No frame comes in from here on until `resume`. */
  pause(reason: InflowPause): void;
  resume(reason: InflowPause): void;
  send(text: string): void;
  /** @param principal whose limit it is, where it is no limit of the connection. */
  limitReached(limit: LimitName, principal?: Principal): void;
  /** Ends the connection because of a limit. */
  closeFor(limit: LimitName): void;
}

/** What stands between a text that comes in and intake. */
type InflowState =
  /** Nothing, or its rate. */
  | "flowing"
  /** The text of the unregistered connection has its turn when other unregistered connections have had theirs. */
  | "awaiting_turn"
  /** The text of the unregistered connection is in intake. */
  | "awaiting_answer";

/**
 * The largest control frame: head, mask and payload. No more than that is looked at before it is paid for: whoever waits because of
 * others of its key still gets its ping, and its close, answered. Source: RFC 6455, sections 5.2 and 5.5.
 */
const CONTROL_FRAME_BYTES = 2 + 4 + 125;

/**
 * What one connection sends, on its way from the socket to intake. Over a rate the connection is not read until its next
 * token: nothing is dropped or refused for it. Before the first valid envelope one text is taken in at a time, in turn with
 * other unregistered connections. Source: docs/protocol.md#limits.
 */
export class Inflow implements TurnTaker, PausesOwner {
  readonly #owner: InflowOwner;
  readonly #context: InflowContext;
  #state: InflowState = "flowing";
  /** Waits for its turn, or for the token that was taken for it. */
  #waiting: string | undefined;
  /** True when the chunk that comes next has waited for its bytes. */
  #isPaid = false;
  /** True when a pause was counted since a chunk came. */
  #isCounted = false;
  /** Bytes since a text was whole, but for the rest of the chunk that it came in. */
  #unfinishedBytes = 0;
  /** Undefined from the first valid envelope on. */
  #allowance: Allowance | undefined = new Allowance();
  /** Undefined until then. */
  #rates: ConnectionRates | undefined;
  /** Undefined until the first. */
  #pauses: Pauses | undefined;

  constructor(owner: InflowOwner, context: InflowContext) {
    this.#owner = owner;
    this.#context = context;
  }

  get address(): object {
    return this.#owner.addressCounts;
  }

  /** True while it is not known whether a text of the unregistered connection is valid. */
  get isUndecided(): boolean {
    return this.#state !== "flowing";
  }

  /**
   * A chunk came from the socket. False where it is not to be looked at yet: what is in it costs the pod as soon as it is, and of
   * every connection that is readable one comes before anything else is done. It is to come again when the pause is over.
   */
  admits(count: number): boolean {
    if (this.#rates === undefined || this.#isPaid) {
      this.#isPaid = false;
      return true;
    }
    this.#isCounted = false;
    this.#isPaid = this.#mustWait(this.#rates.takeBytes(count)) && count > CONTROL_FRAME_BYTES;
    return !this.#isPaid;
  }

  text(text: string): void {
    this.#unfinishedBytes = 0;
    if (this.#rates === undefined) {
      this.#waiting = text;
      this.#state = "awaiting_turn";
      this.#owner.pause("turn");
      this.#context.turns.join(this);
    } else if (this.#mustWait(this.#rates.takeEnvelope())) {
      this.#waiting = text;
    } else {
      this.#owner.takeIn(text);
    }
  }

  /**
   * A chunk was handed over, or its rest waits. ws keeps the whole chunk for as long as it needs a part of it: a text that never
   * ends, with pongs between its fragments, would hold all that its client ever sent.
   */
  bytes(count: number): void {
    this.#unfinishedBytes += count;
    if (this.#unfinishedBytes > CONNECTION_LIMITS.unfinishedBytes) {
      this.#owner.closeFor("unfinished_text");
      return;
    }
    this.#allowance?.takeBytes(count);
    // What came with, or behind, a text that may be a register is judged when that is answered: it counts for nothing then.
    if (!this.isUndecided) this.#judgeBytes();
  }

  /**
   * A ping or pong came: it costs its sender what an envelope costs. A client does not know when it is not read, so that of the
   * connection they have tokens of their own.
   */
  control(): void {
    if (this.#rates === undefined) this.#takeFrame();
    else if (this.#rates.takePing()) this.#mustWait(this.#rates.shareFrame());
    else this.#owner.closeFor("pings");
  }

  /** The first valid envelope came in. @param holders whose rates it counts for. */
  registered(holders: readonly RateHolder[]): void {
    this.#allowance = undefined;
    this.#rates = new ConnectionRates(this.#context, holders);
  }

  /** An envelope that was taken in is this principal's, by this agent of the connection. */
  sentBy(principal: Principal, agent: string, text: string): void {
    if (this.#rates !== undefined && !this.#rates.isOf(principal, agent)) {
      this.#mustWait(this.#rates.countFor(principal, agent, Buffer.byteLength(text)));
    }
  }

  takeTurn(): void {
    if (!this.#takeFrame()) return;
    this.#state = "awaiting_answer";
    this.#takeInWaiting();
  }

  /** Nothing of the connection is in flight. What waits goes on when the caller, which is still at the last text, has ended. */
  answered(): void {
    if (this.#state !== "awaiting_answer") return;
    this.#state = "flowing";
    process.nextTick(() => this.#endTurn());
  }

  tellSlow(): void {
    this.#owner.send(this.#context.slowDownNotice);
  }

  pauseEnded(): void {
    this.#owner.resume("rate");
    this.#takeInWaiting();
  }

  stop(): void {
    this.#pauses?.stop();
    this.#waiting = undefined;
    this.#context.turns.leave(this);
  }

  #endTurn(): void {
    this.#judgeBytes();
    this.#owner.resume("turn");
  }

  #judgeBytes(): void {
    if (this.#allowance?.hasBytes === false) this.#owner.closeFor("unregistered_intake");
  }

  #takeInWaiting(): void {
    const text = this.#waiting;
    this.#waiting = undefined;
    if (text !== undefined) this.#owner.takeIn(text);
  }

  /** Begins a pause, or prolongs it, when there is something to wait for. */
  #mustWait(wait: RateWait | null): boolean {
    if (wait === null || this.#owner.isClosing) return false;
    this.#owner.pause("rate");
    if (!this.#isCounted) this.#owner.limitReached(wait.limit, wait.principal);
    this.#isCounted = true;
    this.#pauses ??= new Pauses(this);
    this.#pauses.begin(wait.ms);
    return true;
  }

  /** False when the frame is one too many before the first valid envelope; the connection is closed then. */
  #takeFrame(): boolean {
    if (this.#allowance === undefined || this.#allowance.takeFrame()) return true;
    this.#owner.closeFor("unregistered_intake");
    return false;
  }
}
