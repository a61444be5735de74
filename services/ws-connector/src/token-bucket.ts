/** A token bucket: so many a second on average, so many at once. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;

  /** @param perSecond 0 = no limit. @param now monotonic ms. */
  constructor(perSecond: number, burst: number, now: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = now;
  }

  /** Takes a token. Returns 0, or the ms until there is one. */
  take(now: number): number {
    if (this.#perSecond === 0) return 0;
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond);
    this.#filledAt = now;
    // A thousandth of a token is what floating point may cost one who waited to the millisecond.
    if (this.#tokens < 0.999) return Math.ceil(((1 - this.#tokens) / this.#perSecond) * 1000);
    this.#tokens -= 1;
    return 0;
  }
}
