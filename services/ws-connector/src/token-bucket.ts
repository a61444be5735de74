/**
 * Token buckets of one size: so many tokens a second on average, so many at once. By hand because no library keeps a
 * bucket as one number, and a pod has one for each connection: when it will be full again, in monotonic ms. Its owner
 * keeps that number, 0 at first.
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
    // A thousandth of a token is tolerated: rounding must not refuse a client that waited exactly as long as it was told.
    return wait > 0.001 * this.#msPerToken ? Math.ceil(wait) : 0;
  }

  /** Takes a token. Returns when the bucket is full again. */
  take(fullAt: number, now: number): number {
    return this.#msPerToken === 0 ? 0 : Math.max(fullAt, now) + this.#msPerToken;
  }
}
