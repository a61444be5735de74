/** However many tokens were taken in advance, the wait for the next is no longer than this and one token's own time. */
const MAX_DEBT_MS = 1000;

/**
 * Token buckets of one size: so many tokens a second on average, so many at once. By hand because no library keeps a
 * bucket as one number, and a pod has several for each connection: when it will be full again, in monotonic ms. Its owner
 * keeps that number, 0 at first.
 */
export class TokenBuckets {
  readonly #msPerToken: number;
  readonly #burst: number;
  readonly #maxDebtMs: number;

  /** @param perSecond 0 = no limit. */
  constructor(perSecond: number, burst: number, maxDebtMs = MAX_DEBT_MS) {
    this.#msPerToken = perSecond === 0 ? 0 : 1000 / perSecond;
    this.#burst = burst;
    this.#maxDebtMs = maxDebtMs;
  }

  /** Returns 0 when a bucket has a token, or the ms until it has one. @param fullAt when it is full again. */
  wait(fullAt: number, now: number): number {
    const wait = fullAt - now - (this.#burst - 1) * this.#msPerToken;
    // A thousandth of a token is tolerated: rounding must not refuse a client that waited exactly as long as it was told.
    return wait > 0.001 * this.#msPerToken ? Math.ceil(wait) : 0;
  }

  /** Takes tokens, in advance when there are none. Returns when the bucket is full again. */
  take(fullAt: number, now: number, tokens = 1): number {
    if (this.#msPerToken === 0) return 0;
    const paid = Math.max(fullAt, now) + tokens * this.#msPerToken;
    return Math.min(paid, now + this.#burst * this.#msPerToken + this.#maxDebtMs);
  }
}
