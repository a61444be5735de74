import type { LimitName } from "runtime/metrics/catalogue.ts";
import type { RateHolder } from "window/principal.ts";
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
  /** Returns true when it was not paused for this reason before. */
  pause(reason: InflowPause): boolean;
  resume(reason: InflowPause): void;
  send(text: string): void;
  limitReached(limit: LimitName): void;
  /** Ends the connection because of a limit. */
  closeFor(limit: LimitName): void;
}

/**
 * What one connection sends, on its way from the socket to intake. Over a rate the connection is not read until its next
 * token: nothing is dropped or refused for it. Before the first valid envelope one text is taken in at a time, in turn with
 * other unregistered connections. ws hands over all frames of a chunk, also when the first of them pauses the socket: the
 * others wait here, in their order, and are no more than a chunk holds. Source: docs/protocol.md#limits.
 */
export class Inflow implements TurnTaker, PausesOwner {
  readonly #owner: InflowOwner;
  readonly #context: InflowContext;
  /** Undefined from the first valid envelope on. */
  #allowance: Allowance | undefined = new Allowance();
  /** Undefined until then. */
  #rates: ConnectionRates | undefined;
  /** Texts that were read and not taken in; undefined while none has to wait. */
  #texts: string[] | undefined;
  /** True when the tokens of the first of them are taken. */
  #isPaid = false;
  /** True from the turn of an unregistered connection until its text is answered. */
  #awaitsAnswer = false;
  /** Undefined until the first. */
  #pauses: Pauses | undefined;

  constructor(owner: InflowOwner, context: InflowContext) {
    this.#owner = owner;
    this.#context = context;
  }

  get address(): object {
    return this.#owner.addressCounts;
  }

  /** True while a text waits to be taken in. */
  get hasWaiting(): boolean {
    return this.#texts !== undefined && this.#texts.length > 0;
  }

  /** True while it is not known whether a text that came in is valid. */
  get isUndecided(): boolean {
    return this.#awaitsAnswer || this.hasWaiting;
  }

  text(text: string): void {
    if (this.#texts !== undefined) {
      this.#texts.push(text);
    } else if (this.#rates === undefined) {
      this.#texts = [text];
      this.#owner.pause("turn");
      this.#context.turns.join(this);
    } else if (this.#mustWait(this.#rates.waitForBytes())) {
      this.#texts = [text];
    } else if (this.#mustWait(this.#rates.takeEnvelope())) {
      this.#texts = [text];
      this.#isPaid = true;
    } else {
      this.#owner.takeIn(text);
    }
  }

  /** A chunk came from the socket; its texts have been handed over. */
  bytes(count: number): void {
    if (this.#allowance?.takeBytes(count) === false) this.#owner.closeFor("unregistered_intake");
    if (this.#rates !== undefined) this.#mustWait(this.#rates.takeBytes(count));
  }

  /** Each ping costs a pong. A client does not know when it is not read, so that pings have tokens of their own. */
  ping(): void {
    if (this.#owner.isClosing) return;
    if (this.#rates === undefined) this.#takeFrame();
    else if (!this.#rates.takePing()) this.#owner.closeFor("pings");
  }

  pong(): void {
    if (!this.#owner.isClosing) this.#takeFrame();
  }

  /** The first valid envelope came in. @param holders whose rates it counts for. */
  registered(holders: readonly RateHolder[]): void {
    this.#allowance = undefined;
    this.#rates = new ConnectionRates(this.#context, holders);
  }

  /** Nothing of the connection is in flight. What waits goes on when the caller, which is still at the last text, has ended. */
  answered(): void {
    if (!this.#awaitsAnswer) return;
    this.#awaitsAnswer = false;
    process.nextTick(() => this.#advance());
  }

  takeTurn(): void {
    if (!this.#takeFrame()) return;
    this.#awaitsAnswer = true;
    this.#takeInFirst();
  }

  tellSlow(): void {
    this.#owner.send(this.#context.slowDownNotice);
  }

  pauseEnded(): void {
    this.#advance();
  }

  stop(): void {
    this.#pauses?.stop();
    this.#texts = undefined;
    this.#context.turns.leave(this);
  }

  /** Takes in what waits, as far as there are tokens; then the socket is read again. */
  #advance(): void {
    while (this.hasWaiting) {
      if (this.#owner.isClosing) return;
      if (this.#rates === undefined) {
        this.#context.turns.join(this);
        return;
      }
      if (!this.#isPaid && this.#mustWait(this.#rates.takeEnvelope())) {
        this.#isPaid = true;
        return;
      }
      this.#isPaid = false;
      this.#takeInFirst();
    }
    this.#texts = undefined;
    this.#owner.resume("turn");
    this.#owner.resume("rate");
  }

  #takeInFirst(): void {
    this.#owner.takeIn((this.#texts as string[]).shift() as string);
  }

  /** Begins a pause, or prolongs it, when there is something to wait for. */
  #mustWait(wait: RateWait | null): boolean {
    if (wait === null) return false;
    if (this.#owner.pause("rate")) this.#owner.limitReached(wait.limit);
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
