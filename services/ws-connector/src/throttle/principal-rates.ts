import type { RateHolder } from "relay-window/limits/principals.ts";
import { TokenBuckets } from "./token-bucket.ts";

/**
 * How much the half bucket may be overdrawn: until it is even again a holder counts as above half of its rate. What it may
 * send before its share is known, a burst and a second of the rate, is paid off by then, so that sending by fits and starts
 * gives no more than half of the rate either.
 */
const MAX_HALF_DEBT_MS = 5000;

/** Of one holder. */
interface Account {
  /** When its bucket is full again, monotonic ms. */
  fullAt: number;
  /** The same of the bucket of half the rate. */
  halfFullAt: number;
  /** What it sent in the minute that runs, and in the one before: envelopes or bytes, whatever a token costs. */
  sent: number;
  sentBefore: number;
  /** By how many pods its rate was shared when it paid last: what a token costs. */
  sharedBy: number;
}

/**
 * One bucket for each principal, and each agent of an issuer, over all its connections of the pod, also those that it took
 * itself over with. What they take in advance adds up without a bound: each is not read while it waits, so they come in order,
 * however many they are, and all together never faster than the rate. Whose bucket is full again, and who sent nothing for a
 * minute, is forgotten. What each sent is counted for the operator, without a limit too.
 *
 * Where several pods share a holder's rate, each token costs as many as there are pods: of rate and burst each pod has its
 * part. A bucket of half the rate pays the same, and tells who is above half of what it has here. Source:
 * docs/architecture.md#shared-rates.
 */
export class PrincipalRates {
  readonly #buckets: TokenBuckets;
  readonly #halfBuckets: TokenBuckets;
  readonly #holders = new Map<RateHolder, Account>();
  #sharedBy: ReadonlyMap<RateHolder, number> = new Map();
  /** When the minute that runs began, and the one before: monotonic ms. */
  #minuteBeganAt = performance.now();
  #minuteBeforeBeganAt = this.#minuteBeganAt;

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

  /**
   * Takes tokens, in advance when there are none. Returns the ms until they may be used.
   * @param sent what they are for: as many envelopes, or bytes.
   */
  take(holder: RateHolder, now: number, tokens = 1, sent = tokens): number {
    const account = this.#accountOf(holder);
    const wait = this.#buckets.wait(account.fullAt, now);
    account.sharedBy = this.#sharedBy.get(holder) ?? 1;
    this.#pay(account, now, tokens);
    account.sent += sent;
    return wait;
  }

  /** Gives back what the holder paid last: at the price of then, and out of the minute in which it was counted. */
  refund(holder: RateHolder, now: number, tokens = 1, sent = tokens): void {
    const account = this.#holders.get(holder);
    if (account === undefined) return;
    this.#pay(account, now, -tokens);
    const ofBefore = Math.max(0, sent - account.sent);
    account.sent -= sent - ofBefore;
    account.sentBefore = Math.max(0, account.sentBefore - ofBefore);
  }

  /** When the minute before the one that runs began, monotonic ms: since then `sent` counts. */
  get sentSince(): number {
    return this.#minuteBeforeBeganAt;
  }

  /** What each holder sent in the minute that runs and the one before. */
  *sent(): Generator<[holder: RateHolder, sent: number]> {
    for (const [holder, { sent, sentBefore }] of this.#holders) yield [holder, sent + sentBefore];
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

  /** Ends the minute that runs, and forgets who has nothing to be remembered for. @param now monotonic ms. */
  endMinute(now: number): void {
    this.#minuteBeforeBeganAt = this.#minuteBeganAt;
    this.#minuteBeganAt = now;
    for (const [holder, account] of this.#holders) {
      account.sentBefore = account.sent;
      account.sent = 0;
      const isFull = Math.max(account.fullAt, account.halfFullAt) <= now;
      if (isFull && account.sentBefore === 0) this.#holders.delete(holder);
    }
  }

  #pay(account: Account, now: number, tokens: number): void {
    const price = tokens * account.sharedBy;
    account.fullAt = this.#buckets.take(account.fullAt, now, price);
    account.halfFullAt = this.#halfBuckets.take(account.halfFullAt, now, price);
  }

  #accountOf(holder: RateHolder): Account {
    const known = this.#holders.get(holder);
    if (known !== undefined) return known;
    const made = { fullAt: 0, halfFullAt: 0, sent: 0, sentBefore: 0, sharedBy: 1 };
    this.#holders.set(holder, made);
    return made;
  }
}
