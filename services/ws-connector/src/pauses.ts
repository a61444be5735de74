import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { SlowDown } from "./slow-down.ts";

/** The pauses of one connection whose rate is used up: one at a time, and none longer than a second. */
export class Pauses {
  readonly #ended: (isSlow: boolean) => void;
  readonly #slowDown = new SlowDown();
  /** Runs during a pause. */
  #timer: NodeJS.Timeout | undefined;
  /** Monotonic ms. */
  #since = 0;
  #until = 0;

  /** @param ended called after each pause; `isSlow` when the client is to be told that it sends too much. */
  constructor(ended: (isSlow: boolean) => void) {
    this.#ended = ended;
  }

  /** Begins a pause, or prolongs the one that is under way. */
  begin(waitMs: number): void {
    const now = performance.now();
    const until = now + Math.min(waitMs, CONNECTION_LIMITS.maxPauseMs);
    if (this.#timer !== undefined) {
      this.#until = Math.max(this.#until, until);
      return;
    }
    this.#since = now;
    this.#until = until;
    this.#timer = setTimeout(() => this.#wake(), until - now);
  }

  /** Ends the pause; nothing follows it. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #wake(): void {
    const now = performance.now();
    // Timers are whole milliseconds, and may come a fraction of one too early.
    if (this.#until - now >= 1) {
      this.#timer = setTimeout(() => this.#wake(), this.#until - now);
      return;
    }
    this.#timer = undefined;
    this.#ended(this.#slowDown.pauseEnded(now - this.#since, now));
  }
}
