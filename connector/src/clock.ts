import { MAX_CLOCK_CORRECTION_MS } from "./limits.ts";

/**
 * An estimate of the relay's clock: the relay refuses an envelope whose `ts` is far from it, and this machine's clock may
 * be wrong. All times are epoch milliseconds.
 */
export class Clock {
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
   * Corrects the estimate by a time that the relay has just told. It is late by the way from the relay to here: when the
   * relay was asked does not count, since the time until a connection stands is far longer than that way.
   */
  measure(serverTime: number): void {
    this.#offsetMs = serverTime - Date.now();
  }
}
