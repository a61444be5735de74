/**
 * An estimate of the relay's clock: the relay refuses an envelope whose `ts` is far from it, and this machine's clock may
 * be wrong. All times are epoch milliseconds.
 */
export class Clock {
  #offsetMs = 0;

  now(): number {
    return Math.round(Date.now() + this.#offsetMs);
  }

  /**
   * Corrects the estimate by a time that the relay took between `askedAt` and now; it is off by half that span at most
   * (Cristian's algorithm).
   */
  measure(serverTime: number, askedAt = Date.now()): void {
    this.#offsetMs = serverTime - (askedAt + Date.now()) / 2;
  }
}
