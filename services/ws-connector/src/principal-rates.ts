import { TokenBuckets } from "./token-bucket.ts";

/** Who answers for what a connection sends; tagged by its kind, so that names of several kinds cannot meet. */
export type Principal = `key:${string}`;

export function principalOfKey(keyId: string): Principal {
  return `key:${keyId}`;
}

/** One bucket for each principal, over all its connections of the pod. A bucket that is full again is forgotten. */
export class PrincipalRates {
  readonly #buckets: TokenBuckets;
  /** When each is full again, monotonic ms. */
  readonly #fullAt = new Map<Principal, number>();

  /** @param perSecond 0 = no limit. */
  constructor(perSecond: number, burst: number) {
    this.#buckets = new TokenBuckets(perSecond, burst);
  }

  /** How many principals are remembered. */
  get size(): number {
    return this.#fullAt.size;
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
