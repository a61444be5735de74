/**
 * The relay's clock, as far as it is known: an envelope's `ts` must be near it, and this machine's clock may be anywhere.
 * All times are epoch milliseconds.
 */
export class Clock {
  #offsetMs = 0;

  now(): number {
    return Math.round(Date.now() + this.#offsetMs);
  }

  /**
   * Takes a time that the relay stamped between `askedAt` and now. The middle is off by half their distance at most.
   * Source: Cristian, "Probabilistic clock synchronization" (1989).
   */
  measure(serverTime: number, askedAt = Date.now()): void {
    this.#offsetMs = serverTime - (askedAt + Date.now()) / 2;
  }
}
