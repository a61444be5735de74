import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { SlowDown } from "./slow-down.ts";

/** Who is paused. */
export interface PausesOwner {
  /** The client is to be told that it sends too much. */
  tellSlow(): void;
  /** It may go on. */
  pauseEnded(): void;
}

/** The pauses of one connection whose rate is used up: one at a time, each counted a second of it at a time. */
export class Pauses {
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

  /** Begins a pause, or prolongs the one that is under way. */
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

  /** Ends the pause; nothing follows it. */
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
    // Timers are whole milliseconds, and may come a fraction of one too early.
    if (this.#until - now >= 1) {
      this.#wakeIn(this.#until - now);
      return;
    }
    this.#timer = undefined;
    this.#owner.pauseEnded();
  }
}
