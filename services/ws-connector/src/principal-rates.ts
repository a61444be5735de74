import type { Principal } from "window/principal.ts";
import { TokenBuckets } from "./token-bucket.ts";

/**
 * One bucket for each principal, over all its connections of the pod. What they take in advance adds up without a bound: each
 * is not read while it waits, so they come in order, however many they are, and all together never faster than the rate. A
 * bucket that is full again is forgotten.
 */
export class PrincipalRates {
  readonly #buckets: TokenBuckets;
  /** When each is full again, monotonic ms. */
  readonly #fullAt = new Map<Principal, number>();

  /** @param perSecond 0 = no limit. */
  constructor(perSecond: number, burst: number) {
    this.#buckets = new TokenBuckets(perSecond, burst, Number.POSITIVE_INFINITY);
  }

  /** How many principals are remembered. */
  get size(): number {
    return this.#fullAt.size;
  }

  /** The ms until the principal has a token that nobody took in advance. */
  wait(principal: Principal, now: number): number {
    return this.#buckets.wait(this.#fullAt.get(principal) ?? 0, now);
  }

  /** Takes tokens, in advance when there are none. Returns the ms until they may be used. */
  take(principal: Principal, now: number, tokens = 1): number {
    const fullAt = this.#fullAt.get(principal) ?? 0;
    this.#fullAt.set(principal, this.#buckets.take(fullAt, now, tokens));
    return this.#buckets.wait(fullAt, now);
  }

  /** @param now monotonic ms. */
  forgetFull(now: number): void {
    for (const [principal, fullAt] of this.#fullAt) {
      if (fullAt <= now) this.#fullAt.delete(principal);
    }
  }
}
