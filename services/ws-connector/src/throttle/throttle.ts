import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { Principal, RateHolder } from "relay-window/limits/principals.ts";
import type { FairScheduler, TurnTaker } from "./fair-scheduler.ts";
import { ConnectionRates, type PodRates, type RateWait } from "./rates.ts";

/** Counts frames and bytes of a connection before its first valid envelope. Source: docs/protocol.md#frames. */
class Allowance {
  #frames = 0;
  #bytes = 0;

  /** @returns false if the frame exceeds the allowance. */
  takeFrame(): boolean {
    this.#frames += 1;
    return this.#frames <= CONNECTION_LIMITS.unregisteredFrames;
  }

  takeBytes(count: number): void {
    this.#bytes += count;
  }

  /** False if the connection took more bytes than the allowance has. */
  get hasBytes(): boolean {
    return this.#bytes <= CONNECTION_LIMITS.unregisteredBytes;
  }
}

const SECONDS = CONNECTION_LIMITS.slowDownWindowMs / 1000;

/**
 * Decides when the relay tells a client that it sends too much. The pauses must take more than half of the last ten
 * seconds. The client hears of it at most once in ten seconds. Source: docs/protocol.md#frames.
 */
class SlowDown {
  /** Milliseconds of pauses in each of the last seconds, in a ring. */
  readonly #pausedMs = new Array<number>(SECONDS).fill(0);
  #second = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  /** A part of a pause is over. @param now monotonic ms. @returns true if the relay must tell the client. */
  paused(pausedMs: number, now: number): boolean {
    this.#moveTo(Math.floor(now / 1000));
    this.#pausedMs[this.#second % SECONDS] = (this.#pausedMs[this.#second % SECONDS] as number) + pausedMs;
    const total = this.#pausedMs.reduce((sum, ms) => sum + ms, 0);
    const isSlow = total > CONNECTION_LIMITS.slowDownWindowMs * CONNECTION_LIMITS.slowDownShare;
    if (!isSlow || now - this.#toldAt < CONNECTION_LIMITS.slowDownWindowMs) return false;
    this.#toldAt = now;
    return true;
  }

  #moveTo(second: number): void {
    const gone = Math.min(second - this.#second, SECONDS);
    for (let n = 0; n < gone; n += 1) this.#pausedMs[(second - n) % SECONDS] = 0;
    this.#second = second;
  }
}

/** The owner of the pauses. */
interface PausesOwner {
  /** The owner must tell the client that it sends too much. */
  tellSlow(): void;
  /** The connection may go on. */
  pauseEnded(): void;
}

/**
 * The pauses of one connection whose rate is used up. A connection has one pause at a time. A long pause is counted in
 * parts.
 */
class Pauses {
  readonly #owner: PausesOwner;
  readonly #slowDown = new SlowDown();
  /** Runs during a pause. */
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic ms. */
  #countedUntil = 0;
  #until = 0;

  constructor(owner: PausesOwner) {
    this.#owner = owner;
  }

  /** Begins a pause, or prolongs the current pause. */
  begin(waitMs: number): void {
    const now = performance.now();
    if (this.#timer !== undefined) {
      this.#until = Math.max(this.#until, now + waitMs);
      return;
    }
    this.#countedUntil = now;
    this.#until = now + waitMs;
    this.#wakeIn(waitMs);
  }

  /** Ends the pause without a call to the owner. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #wakeIn(waitMs: number): void {
    this.#timer = setTimeout(() => this.#wake(), Math.min(waitMs, CONNECTION_LIMITS.maxPauseMs));
  }

  #wake(): void {
    const now = performance.now();
    if (this.#slowDown.paused(now - this.#countedUntil, now)) this.#owner.tellSlow();
    this.#countedUntil = now;
    // A timer counts whole milliseconds, and may fire a fraction of a millisecond too early.
    if (this.#until - now >= 1) {
      this.#wakeIn(this.#until - now);
      return;
    }
    this.#timer = undefined;
    this.#owner.pauseEnded();
  }
}

/** The parts that all connections of a pod share. */
export interface ThrottleContext extends PodRates {
  readonly scheduler: FairScheduler;
  /** The frame for a client that sends too much. */
  readonly slowDownNotice: string;
}

/** The reason for a pause: a text waits for its turn, or a rate is used up. */
export type ThrottlePause = "turn" | "rate";

/** The connection, as its throttle sees it. */
export interface ThrottleOwner {
  readonly isClosing: boolean;
  /** The counts of the client address. They identify the address. */
  readonly addressCounts: object;
  takeIn(text: string): void;
  /** From now on no frame comes in until `resume`. */
  pause(reason: ThrottlePause): void;
  resume(reason: ThrottlePause): void;
  send(text: string): void;
  /** @param principal the principal that has the limit. By default the one that answers for the connection. */
  limitReached(limit: LimitName, principal?: Principal): void;
  /** Ends the connection because of a limit. */
  closeFor(limit: LimitName): void;
}

/** The place of an unregistered connection's text. Texts of a registered connection wait only for their rate. */
type ThrottleState =
  /** There is no text. */
  | "flowing"
  /** The text waits for texts of other unregistered connections. */
  | "awaiting_turn"
  /** The text is in intake. */
  | "awaiting_answer";

/**
 * The largest control frame: header, mask and payload. The pod reads a chunk of at most this size without waiting for
 * tokens. So a client gets an answer to its ping or close even if others used up the bytes of its key. Source: RFC
 * 6455, sections 5.2 and 5.5.
 */
const CONTROL_FRAME_BYTES = 2 + 4 + 125;

/**
 * Rate limits of one connection, between socket and intake. Above a rate the pod pauses the connection until the next
 * token. It drops and refuses nothing. Before the first valid envelope it takes in one text at a time, in turn with
 * other unregistered connections. Source: docs/protocol.md#limits.
 */
export class Throttle implements TurnTaker, PausesOwner {
  readonly #owner: ThrottleOwner;
  readonly #context: ThrottleContext;
  #state: ThrottleState = "flowing";
  /** The text that waits for its turn, or for its token. */
  #waiting: string | undefined;
  /** True if the next chunk was put back, and its tokens were taken then. */
  #isPaid = false;
  /** True if a pause was counted since the last chunk came. */
  #isPauseCounted = false;
  /** Bytes of the chunks since the last complete text. The chunk that completed it counts, because its rest may wait. */
  #unfinishedBytes = 0;
  /** Undefined from the first valid envelope on. */
  #allowance: Allowance | undefined = new Allowance();
  /** Undefined until the first valid envelope. */
  #rates: ConnectionRates | undefined;
  /** Undefined until the first pause. */
  #pauses: Pauses | undefined;

  constructor(owner: ThrottleOwner, context: ThrottleContext) {
    this.#owner = owner;
    this.#context = context;
  }

  get address(): object {
    return this.#owner.addressCounts;
  }

  /** True while a text of the unregistered connection waits for its turn or its answer. The text may be a register. */
  get hasPendingText(): boolean {
    return this.#state !== "flowing";
  }

  /**
   * A chunk came from the socket. Frames cost the pod as soon as ws reads them. Node reads a chunk of each readable
   * connection before it does anything else.
   * @returns false if the chunk must wait until the pause is over. The caller puts it back.
   */
  payForChunk(count: number): boolean {
    if (this.#rates === undefined || this.#isPaid) {
      this.#isPaid = false;
      return true;
    }
    this.#isPauseCounted = false;
    this.#isPaid = this.#pauseFor(this.#rates.takeBytes(count)) && count > CONTROL_FRAME_BYTES;
    return !this.#isPaid;
  }

  text(text: string): void {
    this.#unfinishedBytes = 0;
    if (this.#rates === undefined) {
      this.#waiting = text;
      this.#state = "awaiting_turn";
      this.#owner.pause("turn");
      this.#context.scheduler.join(this);
    } else if (this.#pauseFor(this.#rates.takeEnvelope())) {
      this.#waiting = text;
    } else {
      this.#owner.takeIn(text);
    }
  }

  /**
   * A chunk was handed over, or its rest waits. ws keeps a whole chunk while it needs a part of it. A text that never
   * ends, with pongs between its fragments, would fill the memory.
   */
  noteBytes(count: number): void {
    this.#unfinishedBytes += count;
    if (this.#unfinishedBytes > CONNECTION_LIMITS.unfinishedBytes) {
      this.#owner.closeFor("unfinished_text");
      return;
    }
    this.#allowance?.takeBytes(count);
    // A pending text may be a register, and the allowance ends with a register.
    if (!this.hasPendingText) this.#enforceAllowance();
  }

  /**
   * A ping or pong came. It costs its sender as much as an envelope. The connection has separate tokens for pings and
   * pongs, because a client does not know when it is paused.
   */
  pingOrPong(): void {
    if (this.#rates === undefined) this.#takeFrame();
    else if (this.#rates.takePing()) this.#pauseFor(this.#rates.shareFrame());
    else this.#owner.closeFor("pings");
  }

  /** The first valid envelope came in. @param holders the holders whose rates it counts for. */
  registered(holders: readonly RateHolder[]): void {
    this.#allowance = undefined;
    this.#rates = new ConnectionRates(this.#context, holders);
  }

  /** This principal signed an envelope of this agent of the connection, and pays for the envelope. */
  sentBy(principal: Principal, agent: string, text: string): void {
    if (this.#rates !== undefined && !this.#rates.isOf(principal, agent)) {
      this.#pauseFor(this.#rates.movePayment(principal, agent, Buffer.byteLength(text)));
    }
  }

  takeTurn(): void {
    if (!this.#takeFrame()) return;
    this.#state = "awaiting_answer";
    this.#takeInWaiting();
  }

  /**
   * Nothing of the connection is in flight. The pod reads it again in a later tick, because the caller still handles
   * the last text.
   */
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
    this.#context.scheduler.leave(this);
  }

  #endTurn(): void {
    this.#enforceAllowance();
    this.#owner.resume("turn");
  }

  #enforceAllowance(): void {
    if (this.#allowance?.hasBytes === false) this.#owner.closeFor("unregistered_intake");
  }

  #takeInWaiting(): void {
    const text = this.#waiting;
    this.#waiting = undefined;
    if (text !== undefined) this.#owner.takeIn(text);
  }

  /** Begins or prolongs a pause. @returns false if there is nothing to wait for. */
  #pauseFor(wait: RateWait | null): boolean {
    if (wait === null || this.#owner.isClosing) return false;
    this.#owner.pause("rate");
    if (!this.#isPauseCounted) this.#owner.limitReached(wait.limit, wait.principal);
    this.#isPauseCounted = true;
    this.#pauses ??= new Pauses(this);
    this.#pauses.begin(wait.ms);
    return true;
  }

  /** Closes the connection after too many frames before the first valid envelope. @returns false if so. */
  #takeFrame(): boolean {
    if (this.#allowance === undefined || this.#allowance.takeFrame()) return true;
    this.#owner.closeFor("unregistered_intake");
    return false;
  }
}
