import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
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

/** What stands between a text that comes in and intake. */
type InflowState =
  /** Nothing waits here; the socket may wait all the same, for the bytes of the last chunk. */
  | "flowing"
  /** The first text that waits has its turn when other unregistered connections have had theirs. */
  | "awaiting_turn"
  /** A text of the unregistered connection is in intake; those behind it wait for its answer. */
  | "awaiting_answer"
  /** The bytes of the registered connection are used up. */
  | "awaiting_bytes"
  /** The tokens of the first text that waits are taken, and not there yet. */
  | "awaiting_envelope"
  /** Nothing is waited for any more: what came in meanwhile goes on, in its order. */
  | "moving_on";

/**
 * What one connection sends, on its way from the socket to intake. Over a rate the connection is not read until its next
 * token: nothing is dropped or refused for it. Before the first valid envelope one text is taken in at a time, in turn with
 * other unregistered connections. ws hands over all frames of a chunk, also when the first of them pauses the socket: the
 * others wait here, in their order, and are no more than a chunk holds. Source: docs/protocol.md#limits.
 */
export class Inflow implements TurnTaker, PausesOwner {
  readonly #owner: InflowOwner;
  readonly #context: InflowContext;
  #state: InflowState = "flowing";
  /** Texts that were read and not taken in; undefined while the state is `flowing`, and after the stop. */
  #texts: string[] | undefined;
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
    return this.#state === "awaiting_turn" || this.#state === "awaiting_answer";
  }

  text(text: string): void {
    this.#unfinishedBytes = 0;
    if (this.#state !== "flowing") {
      this.#keep(text);
    } else if (this.#rates === undefined) {
      this.#owner.pause("turn");
      this.#wait("awaiting_turn", text);
      this.#context.turns.join(this);
    } else if (this.#mustWait(this.#rates.waitForBytes())) {
      this.#wait("awaiting_bytes", text);
    } else if (this.#mustWait(this.#rates.takeEnvelope())) {
      this.#wait("awaiting_envelope", text);
    } else {
      this.#owner.takeIn(text);
    }
  }

  /**
   * A chunk came from the socket; its texts have been handed over. ws keeps the whole chunk for as long as it needs a part of it:
   * a text that never ends, with pongs between its fragments, would hold all that its client ever sent.
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
    if (this.#rates !== undefined) this.#mustWait(this.#rates.takeBytes(count));
  }

  /** Each ping costs a pong. A client does not know when it is not read, so that pings have tokens of their own. */
  ping(): void {
    if (this.#rates === undefined) this.#takeFrame();
    else if (!this.#rates.takePing()) this.#owner.closeFor("pings");
  }

  pong(): void {
    this.#takeFrame();
  }

  /** The first valid envelope came in. @param holders whose rates it counts for. */
  registered(holders: readonly RateHolder[]): void {
    this.#allowance = undefined;
    this.#rates = new ConnectionRates(this.#context, holders);
  }

  takeTurn(): void {
    if (!this.#takeFrame()) return;
    this.#state = "awaiting_answer";
    this.#takeInFirst();
  }

  /** Nothing of the connection is in flight. What waits goes on when the caller, which is still at the last text, has ended. */
  answered(): void {
    if (this.#state !== "awaiting_answer") return;
    this.#state = "moving_on";
    process.nextTick(() => this.#moveOn());
  }

  tellSlow(): void {
    this.#owner.send(this.#context.slowDownNotice);
  }

  pauseEnded(): void {
    this.#moveOn();
  }

  stop(): void {
    this.#pauses?.stop();
    this.#texts = undefined;
    this.#context.turns.leave(this);
  }

  /** Behind those that wait. */
  #keep(text: string): void {
    if (this.#texts === undefined) return;
    this.#texts.push(text);
    const areTooMany = this.#texts.length > CONNECTION_LIMITS.unregisteredTexts;
    if (areTooMany && this.#rates === undefined) this.#owner.closeFor("unregistered_intake");
  }

  #wait(state: InflowState, text: string): void {
    this.#state = state;
    this.#texts = [text];
  }

  /** Takes in what waits, as far as there are tokens; then the socket is read again. */
  #moveOn(): void {
    this.#judgeBytes();
    while (this.#texts !== undefined && this.#texts.length > 0) {
      if (this.#owner.isClosing) return;
      if (this.#rates === undefined) {
        this.#state = "awaiting_turn";
        this.#context.turns.join(this);
        return;
      }
      if (this.#state !== "awaiting_envelope" && this.#mustWait(this.#rates.takeEnvelope())) {
        this.#state = "awaiting_envelope";
        return;
      }
      this.#state = "moving_on";
      this.#takeInFirst();
    }
    this.#state = "flowing";
    this.#texts = undefined;
    this.#owner.resume("turn");
    this.#owner.resume("rate");
  }

  #judgeBytes(): void {
    if (this.#allowance?.hasBytes === false) this.#owner.closeFor("unregistered_intake");
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
