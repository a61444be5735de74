/**
 * Token buckets of one size: so many tokens a second on average, so many at once. All that a bucket has to remember is
 * when it will be full again, in monotonic ms: a number that its owner keeps, 0 at first.
 */
export class TokenBuckets {
  readonly #msPerToken: number;
  readonly #burst: number;

  /** @param perSecond 0 = no limit. */
  constructor(perSecond: number, burst: number) {
    this.#msPerToken = perSecond === 0 ? 0 : 1000 / perSecond;
    this.#burst = burst;
  }

  /** Returns 0 when a bucket has a token, or the ms until it has one. @param fullAt when it is full again. */
  wait(fullAt: number, now: number): number {
    const wait = fullAt - now - (this.#burst - 1) * this.#msPerToken;
    // A thousandth of a token is what floating point may cost one who waited to the millisecond.
    return wait > 0.001 * this.#msPerToken ? Math.ceil(wait) : 0;
  }

  /** Returns when a bucket is full again that gives a token now. */
  take(fullAt: number, now: number): number {
    return this.#msPerToken === 0 ? 0 : Math.max(fullAt, now) + this.#msPerToken;
  }
}
