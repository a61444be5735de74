import type { RateHolder } from "window/principal.ts";
import { TokenBuckets } from "./token-bucket.ts";

/**
 * How much the half bucket may be overdrawn: until it is even again a holder counts as above half of its rate. What it may
 * send before its share is known, a burst and a second of the rate, is paid off by then, so that sending by fits and starts
 * gives no more than half of the rate either.
 */
const MAX_HALF_DEBT_MS = 5000;

/** Of one holder: when its buckets are full again, monotonic ms. */
interface FullTimes {
  fullAt: number;
  /** Of the bucket of half the rate. */
  halfFullAt: number;
}

/**
 * One bucket for each principal, and each agent of an issuer, over all its connections of the pod, also those that it took
 * itself over with. What they take in advance adds up without a bound: each is not read while it waits, so they come in order,
 * however many they are, and all together never faster than the rate. A bucket that is full again is forgotten.
 *
 * Where several pods share a holder's rate, each token costs as many as there are pods: of rate and burst each pod has its
 * part. A bucket of half the rate pays the same, and tells who is above half of what it has here. Source:
 * docs/architecture.md#shared-rates.
 */
export class PrincipalRates {
  readonly #buckets: TokenBuckets;
  readonly #halfBuckets: TokenBuckets;
  readonly #holders = new Map<RateHolder, FullTimes>();
  #sharedBy: ReadonlyMap<RateHolder, number> = new Map();

  /** @param perSecond 0 = no limit. */
  constructor(perSecond: number, burst: number) {
    this.#buckets = new TokenBuckets(perSecond, burst, Number.POSITIVE_INFINITY);
    // More than half of the rate within a second overdraws it.
    this.#halfBuckets = new TokenBuckets(perSecond / 2, perSecond / 2 + 1, MAX_HALF_DEBT_MS);
  }

  /** How many holders are remembered. */
  get size(): number {
    return this.#holders.size;
  }

  /** The ms until the holder has a token that nobody took in advance. */
  wait(holder: RateHolder, now: number): number {
    return this.#buckets.wait(this.#holders.get(holder)?.fullAt ?? 0, now);
  }

  /** Takes tokens, in advance when there are none. Returns the ms until they may be used. */
  take(holder: RateHolder, now: number, tokens = 1): number {
    const times = this.#timesOf(holder);
    const price = tokens * (this.#sharedBy.get(holder) ?? 1);
    const wait = this.#buckets.wait(times.fullAt, now);
    times.fullAt = this.#buckets.take(times.fullAt, now, price);
    times.halfFullAt = this.#halfBuckets.take(times.halfFullAt, now, price);
    return wait;
  }

  /** The holders that are above half of the rate, or of their share of it. */
  aboveHalf(now: number): RateHolder[] {
    const found: RateHolder[] = [];
    for (const [holder, { halfFullAt }] of this.#holders) {
      if (this.#halfBuckets.wait(halfFullAt, now) > 0) found.push(holder);
    }
    return found;
  }

  /** From here on these holders have a part of their rate here, all others the whole. @param sharedBy how many pods. */
  share(sharedBy: ReadonlyMap<RateHolder, number>): void {
    this.#sharedBy = sharedBy;
  }

  /** @param now monotonic ms. */
  forgetFull(now: number): void {
    for (const [holder, { fullAt, halfFullAt }] of this.#holders) {
      if (Math.max(fullAt, halfFullAt) <= now) this.#holders.delete(holder);
    }
  }

  #timesOf(holder: RateHolder): FullTimes {
    const known = this.#holders.get(holder);
    if (known !== undefined) return known;
    const full = { fullAt: 0, halfFullAt: 0 };
    this.#holders.set(holder, full);
    return full;
  }
}
