import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { boundsFactorOf, type Principal, type RateHolder, rateHoldersOf } from "relay-window/limits/principals.ts";
import type { PrincipalShares, SharedLimit } from "relay-window/limits/shared-rates.ts";

/**
 * Bounds the debt of tokens taken in advance. The wait for the next token is at most this plus the time of one token.
 */
const MAX_DEBT_MS = 1000;

/**
 * Token buckets of one rate and burst. A bucket is one number: the time when it is full again, in monotonic ms. The
 * owner keeps that number, 0 at first. A pod has several buckets per connection, and no library keeps a bucket as one
 * number.
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

  /**
   * @param fullAt when the bucket is full again.
   * @returns the ms until the bucket has a token; 0 if it has one.
   */
  wait(fullAt: number, now: number): number {
    const wait = fullAt - now - (this.#burst - 1) * this.#msPerToken;
    // A thousandth of a token may be missing: rounding must not refuse a client that waited exactly as long as it was
    // told.
    return wait > 0.001 * this.#msPerToken ? Math.ceil(wait) : 0;
  }

  /** Takes tokens, in advance if there are none. @returns when the bucket is full again. */
  take(fullAt: number, now: number, tokens = 1): number {
    if (this.#msPerToken === 0) return 0;
    const paid = Math.max(fullAt, now) + tokens * this.#msPerToken;
    return Math.min(paid, now + this.#burst * this.#msPerToken + this.#maxDebtMs);
  }
}

/** The rates of a pod. All its connections have the same rates. */
export interface PodRates {
  /** Envelopes of a connection. Its pings and pongs have separate buckets of the same size. */
  readonly envelopes: TokenBuckets;
  readonly bytes: TokenBuckets;
  /** Envelopes, pings and pongs of a holder. */
  readonly principals: PrincipalRates;
  /** Bytes of a holder, because large envelopes cost a pod far more than small envelopes. */
  readonly principalBytes: PrincipalRates;
}

/** How long a connection has to wait, and the limit that it waits for. */
export interface RateWait {
  readonly ms: number;
  readonly limit: LimitName;
  /** The principal that has the limit. Undefined for a limit of the connection. */
  readonly principal?: Principal;
}

/**
 * The tokens of one registered connection, and of its holders. Times are monotonic ms. Every connection has this
 * object, and a list of holders would double its memory. So it has two fields.
 */
export class ConnectionRates {
  readonly #rates: PodRates;
  /** The principal of the first valid envelope. It pays for everything without another known sender. */
  readonly #principal: Principal;
  /** Undefined if the principal is not an issuer. */
  readonly #agent: RateHolder | undefined;
  /** The times when the connection's buckets are full again. */
  #envelopesFullAt = 0;
  #pingsFullAt = 0;
  #bytesFullAt = 0;

  /** @param holders of the connection's first valid envelope. */
  constructor(rates: PodRates, holders: readonly RateHolder[]) {
    this.#rates = rates;
    [this.#principal, this.#agent] = holders as readonly [Principal, RateHolder?];
  }

  /** Takes the tokens of one envelope, in advance if there are none. @returns the wait for them, or null. */
  takeEnvelope(): RateWait | null {
    const { envelopes } = this.#rates;
    const now = performance.now();
    const ms = envelopes.wait(this.#envelopesFullAt, now);
    this.#envelopesFullAt = envelopes.take(this.#envelopesFullAt, now);
    return longer({ ms, limit: "envelopes" }, this.#shareFrame(now));
  }

  /** Takes the tokens of bytes that came in, in advance if there are none. @returns the wait for them, or null. */
  takeBytes(count: number): RateWait | null {
    const { bytes, principalBytes } = this.#rates;
    const now = performance.now();
    const ms = bytes.wait(this.#bytesFullAt, now);
    this.#bytesFullAt = bytes.take(this.#bytesFullAt, now, count);
    const sharedMs = takeOf(principalBytes, now, count, this.#principal, this.#agent);
    return longer({ ms, limit: "bytes" }, { ms: sharedMs, limit: "key_bytes", principal: this.#principal });
  }

  /** @returns false if the connection has no token for a ping or pong. */
  takePing(): boolean {
    const { envelopes } = this.#rates;
    const now = performance.now();
    if (envelopes.wait(this.#pingsFullAt, now) > 0) return false;
    this.#pingsFullAt = envelopes.take(this.#pingsFullAt, now);
    return true;
  }

  /** Takes the holders' tokens for a ping or pong. @returns the wait for them, or null. */
  shareFrame(): RateWait | null {
    const shared = this.#shareFrame(performance.now());
    return shared.ms === 0 ? null : shared;
  }

  /** True if this connection already takes the tokens of this principal and agent for everything that comes in. */
  isOf(principal: Principal, agent: string): boolean {
    return principal === this.#principal && (this.#agent === undefined || this.#agent === agent);
  }

  /**
   * Another agent or key signed an envelope that the connection's holders paid for. They get a refund, and the signer's
   * holders pay. If one issuer issued both agents, it has already paid.
   * @returns the wait for the signer's tokens, or null.
   */
  movePayment(principal: Principal, agent: string, bytes: number): RateWait | null {
    const { principals, principalBytes } = this.#rates;
    const now = performance.now();
    const [other, issued] = rateHoldersOf(principal, agent);
    const [payer, payee] = principal === this.#principal ? [undefined, undefined] : [this.#principal, other];
    for (const holder of [payer, this.#agent]) {
      if (holder === undefined) continue;
      principals.refund(holder, now, costOf(holder), 1);
      principalBytes.refund(holder, now, bytes * costOf(holder), bytes);
    }
    const ms = takeOf(principals, now, 1, payee, issued);
    const ofBytes = takeOf(principalBytes, now, bytes, payee, issued);
    return longer({ ms, limit: "key_envelopes", principal }, { ms: ofBytes, limit: "key_bytes", principal });
  }

  #shareFrame(now: number): RateWait {
    const ms = takeOf(this.#rates.principals, now, 1, this.#principal, this.#agent);
    return { ms, limit: "key_envelopes", principal: this.#principal };
  }
}

/** Takes tokens from every holder. @returns the longest wait, in ms. */
function takeOf(
  rates: PrincipalRates,
  now: number,
  count: number,
  principal: RateHolder | undefined,
  agent: RateHolder | undefined,
): number {
  const ofPrincipal = principal === undefined ? 0 : rates.take(principal, now, count * costOf(principal), count);
  return agent === undefined
    ? ofPrincipal
    : Math.max(ofPrincipal, rates.take(agent, now, count * costOf(agent), count));
}

/** Tokens for one envelope or byte: 1, or 1/25 if the holder is an issuer. */
function costOf(holder: RateHolder): number {
  return 1 / boundsFactorOf(holder);
}

function longer(own: RateWait, shared: RateWait): RateWait | null {
  const wait = shared.ms > own.ms ? shared : own;
  return wait.ms === 0 ? null : wait;
}

/**
 * Shares the limits of holders between pods. A pod leases a share only for holders above half of a limit on this pod.
 * No envelope waits for a lease. Without an answer from Redis the pod's own limit is in force. Source:
 * docs/architecture.md#shared-rates.
 */
export class ShareLeases {
  readonly #shares: Pick<PrincipalShares, "lease">;
  readonly #limits: readonly (readonly [SharedLimit, PrincipalRates])[];

  constructor(shares: Pick<PrincipalShares, "lease">, rates: Pick<PodRates, "principals" | "principalBytes">) {
    this.#shares = shares;
    this.#limits = [
      ["key_envelopes", rates.principals],
      ["key_bytes", rates.principalBytes],
    ];
  }

  /** Begins and renews leases. The lease of a holder that is no longer above half ends by itself. */
  async renew(): Promise<void> {
    await Promise.all(this.#limits.map(([limit, rates]) => this.#renew(limit, rates)));
  }

  async #renew(limit: SharedLimit, rates: PrincipalRates): Promise<void> {
    rates.share(await this.#shares.lease(limit, rates.aboveHalf(performance.now())));
  }
}

/**
 * The most debt of the half bucket, in ms. A holder in debt counts as above half of its rate. Before its share is
 * known, a holder may send a burst and one second of its rate. The holder pays this off while it is in debt. So sending
 * in bursts gives no more than half of the rate.
 */
const MAX_HALF_DEBT_MS = 5000;

/** The buckets and counts of one holder. */
interface Account {
  /** When the bucket is full again, monotonic ms. */
  fullAt: number;
  /** When the bucket of half the rate is full again, monotonic ms. */
  halfFullAt: number;
  /** Envelopes or bytes sent in this minute and in the previous minute. The price of a token does not matter. */
  sent: number;
  sentBefore: number;
  /** The number of pods that shared the rate at the last payment. This is the price of a token. */
  sharedBy: number;
}

/**
 * One bucket per holder, for all its connections of the pod. A holder is a principal, or an agent of an issuer. Debt
 * has no bound: each connection waits for its own token, so they pass in order at the rate. A full bucket that is idle
 * for a minute is deleted. The operator can read the counts of each holder, even if there is no limit.
 *
 * If several pods share a holder's rate, a token costs as many tokens as there are pods. So each pod has its part of
 * rate and burst. A bucket of half the rate pays the same price. It tells which holders are above half of their part.
 * Source: docs/architecture.md#shared-rates.
 */
export class PrincipalRates {
  readonly #buckets: TokenBuckets;
  readonly #halfBuckets: TokenBuckets;
  readonly #holders = new Map<RateHolder, Account>();
  #sharedBy: ReadonlyMap<RateHolder, number> = new Map();
  /** When this minute and the previous minute began, monotonic ms. */
  #minuteBeganAt = performance.now();
  #minuteBeforeBeganAt = this.#minuteBeganAt;

  /** @param perSecond 0 = no limit. */
  constructor(perSecond: number, burst: number) {
    this.#buckets = new TokenBuckets(perSecond, burst, Number.POSITIVE_INFINITY);
    // A holder that sends more than half of its rate within a second overdraws this bucket.
    this.#halfBuckets = new TokenBuckets(perSecond / 2, perSecond / 2 + 1, MAX_HALF_DEBT_MS);
  }

  /**
   * Takes tokens, in advance if there are none.
   * @param sent the envelopes or bytes that the tokens pay for.
   * @returns the ms until the tokens may be used.
   */
  take(holder: RateHolder, now: number, tokens = 1, sent = tokens): number {
    const account = this.#accountOf(holder);
    const wait = this.#buckets.wait(account.fullAt, now);
    account.sharedBy = this.#sharedBy.get(holder) ?? 1;
    this.#pay(account, now, tokens);
    account.sent += sent;
    return wait;
  }

  /** Refunds the last payment of the holder, at the price of that payment. The counts of the minutes fall with it. */
  refund(holder: RateHolder, now: number, tokens = 1, sent = tokens): void {
    const account = this.#holders.get(holder);
    if (account === undefined) return;
    this.#pay(account, now, -tokens);
    const ofBefore = Math.max(0, sent - account.sent);
    account.sent -= sent - ofBefore;
    account.sentBefore = Math.max(0, account.sentBefore - ofBefore);
  }

  /** When the previous minute began, monotonic ms. `sent` counts from then on. */
  get sentSince(): number {
    return this.#minuteBeforeBeganAt;
  }

  /** Envelopes or bytes of each holder in this minute and the previous minute. */
  *sent(): Generator<[holder: RateHolder, sent: number]> {
    for (const [holder, { sent, sentBefore }] of this.#holders) yield [holder, sent + sentBefore];
  }

  /** The holders that are above half of their rate, or of their share of the rate. */
  aboveHalf(now: number): RateHolder[] {
    const found: RateHolder[] = [];
    for (const [holder, { halfFullAt }] of this.#holders) {
      if (this.#halfBuckets.wait(halfFullAt, now) > 0) found.push(holder);
    }
    return found;
  }

  /**
   * From now on these holders have a part of their rate on this pod. All others have their whole rate.
   * @param sharedBy the number of pods, by holder.
   */
  share(sharedBy: ReadonlyMap<RateHolder, number>): void {
    this.#sharedBy = sharedBy;
  }

  /** Ends this minute, and deletes the accounts with full buckets and no counts. @param now monotonic ms. */
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
