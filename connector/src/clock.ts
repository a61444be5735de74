import { MAX_CLOCK_CORRECTION_MS, SAME_CLOCK_MS } from "./limits.ts";

/**
 * An estimate of the relay's clock: the relay refuses an envelope whose `ts` is far from it, and this machine's clock may
 * be wrong. All times are epoch milliseconds.
 */
export class Clock {
  /** What the relay's clock is ahead of this machine's by: between these, by all that it told. */
  #leastMs = Number.NEGATIVE_INFINITY;
  #mostMs = Number.POSITIVE_INFINITY;
  #offsetMs = 0;

  /** The relay's clock, whatever it says: what this agent signs with. */
  now(): number {
    return Math.round(Date.now() + this.#offsetMs);
  }

  /**
   * What deliveries are judged by: this machine's clock, which the relay corrects by a bounded time only. A relay that lies
   * about the time would else make any old envelope a recent one.
   */
  boundedNow(): number {
    const bounded = Math.max(-MAX_CLOCK_CORRECTION_MS, Math.min(this.#offsetMs, MAX_CLOCK_CORRECTION_MS));
    return Math.round(Date.now() + bounded);
  }

  /** False when the relay's clock and this machine's are so far apart that either may be wrong, or lie. */
  get isTrusted(): boolean {
    return Math.abs(this.#offsetMs) <= MAX_CLOCK_CORRECTION_MS;
  }

  /**
   * Corrects the estimate by a time that the relay told. It told it between the question and now: how long either way took,
   * or a busy machine to read it, nobody knows, so that is no error of a clock. What fits to what was told before narrows it,
   * so the quickest answer counts most; what does not says that a clock was set.
   * @param elapsedMs since the relay was asked.
   */
  measure(serverTime: number, elapsedMs = 0): void {
    const leastMs = serverTime - Date.now();
    const mostMs = leastMs + elapsedMs;
    const fits = leastMs <= this.#mostMs && mostMs >= this.#leastMs;
    this.#leastMs = fits ? Math.max(leastMs, this.#leastMs) : leastMs;
    this.#mostMs = fits ? Math.min(mostMs, this.#mostMs) : mostMs;
    const isSame = this.#leastMs <= SAME_CLOCK_MS && this.#mostMs >= -SAME_CLOCK_MS;
    this.#offsetMs = isSame ? 0 : (this.#leastMs + this.#mostMs) / 2;
  }
}
