import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { PrincipalShares, SharedLimit } from "relay-window/limits/principal-bounds.ts";
import { boundsFactorOf, type Principal, type RateHolder, rateHoldersOf } from "relay-window/limits/principals.ts";

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

/** The rates of a pod, the same for all its connections. */
export interface PodRates {
  /** Of envelopes, and as many pings and pongs, of a connection. */
  readonly envelopes: TokenBuckets;
  readonly bytes: TokenBuckets;
  /** Of envelopes, pings and pongs. */
  readonly principals: PrincipalRates;
  /** Of bytes: large envelopes cost a pod far more than small ones. */
  readonly principalBytes: PrincipalRates;
}

/** How long a connection has to wait, and the limit that it waits for. */
export interface RateWait {
  readonly ms: number;
  readonly limit: LimitName;
  /** Whose limit it is; undefined of the connection's own. */
  readonly principal?: Principal;
}

/**
 * What a registered connection may still send, by its own rates and those of its holders. Times are monotonic ms. Every
 * connection has one: a list of its holders would take as much again.
 */
export class ConnectionRates {
  readonly #rates: PodRates;
  /** Of the connection's first valid envelope: pays for what no other is known to have sent. */
  readonly #principal: Principal;
  /** Undefined where the principal is no issuer. */
  readonly #agent: RateHolder | undefined;
  /** When each bucket of the connection is full again. */
  #envelopesFullAt = 0;
  #pingsFullAt = 0;
  #bytesFullAt = 0;

  /** @param holders of the connection's first valid envelope. */
  constructor(rates: PodRates, holders: readonly RateHolder[]) {
    this.#rates = rates;
    [this.#principal, this.#agent] = holders as readonly [Principal, RateHolder?];
  }

  /** Takes the tokens of one envelope, which may wait for them. Returns null, or how long until they are there. */
  takeEnvelope(): RateWait | null {
    const { envelopes } = this.#rates;
    const now = performance.now();
    const ms = envelopes.wait(this.#envelopesFullAt, now);
    this.#envelopesFullAt = envelopes.take(this.#envelopesFullAt, now);
    return longer({ ms, limit: "envelopes" }, this.#shareFrame(now));
  }

  /** Takes the tokens of bytes that came in, which may wait for them. Returns null, or how long until they are there. */
  takeBytes(count: number): RateWait | null {
    const { bytes, principalBytes } = this.#rates;
    const now = performance.now();
    const ms = bytes.wait(this.#bytesFullAt, now);
    this.#bytesFullAt = bytes.take(this.#bytesFullAt, now, count);
    const sharedMs = takeOf(principalBytes, now, count, this.#principal, this.#agent);
    return longer({ ms, limit: "bytes" }, { ms: sharedMs, limit: "key_bytes", principal: this.#principal });
  }

  /** False when there are no tokens for a ping, or pong, of the connection. */
  takePing(): boolean {
    const { envelopes } = this.#rates;
    const now = performance.now();
    if (envelopes.wait(this.#pingsFullAt, now) > 0) return false;
    this.#pingsFullAt = envelopes.take(this.#pingsFullAt, now);
    return true;
  }

  /** Takes what a ping or pong costs its holders. Returns null, or how long until that is there. */
  shareFrame(): RateWait | null {
    const shared = this.#shareFrame(performance.now());
    return shared.ms === 0 ? null : shared;
  }

  /** True for whose tokens are taken already for what comes in. */
  isOf(principal: Principal, agent: string): boolean {
    return principal === this.#principal && (this.#agent === undefined || this.#agent === agent);
  }

  /**
   * The connection's holders paid for an envelope that another agent, or another key, signed. They get that back, and the signer's
   * holders pay. An issuer of both agents has paid already. Returns null, or how long until the signer's tokens are there.
   */
  countFor(principal: Principal, agent: string, bytes: number): RateWait | null {
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

/** Takes of every holder, whichever has to wait. Returns the longest wait. */
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

/** What one envelope, or byte, takes from the holder's bucket: a token, of an issuer 1/25 of one. */
function costOf(holder: RateHolder): number {
  return 1 / boundsFactorOf(holder);
}

function longer(own: RateWait, shared: RateWait): RateWait | null {
  const wait = shared.ms > own.ms ? shared : own;
  return wait.ms === 0 ? null : wait;
}

/**
 * Has the pod share the limits of principals that are above half of them here with the other pods where they are, too. What
 * comes in never waits for it: a renewal goes to Redis beside it, and one without an answer leaves the pod's own limit in
 * force. Of principals below half nothing is asked. Source: docs/architecture.md#shared-rates.
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

  /** Begins and renews leases; those of principals that are above half no more end by themselves. */
  async renew(): Promise<void> {
    await Promise.all(this.#limits.map(([limit, rates]) => this.#renew(limit, rates)));
  }

  async #renew(limit: SharedLimit, rates: PrincipalRates): Promise<void> {
    rates.share(await this.#shares.lease(limit, rates.aboveHalf(performance.now())));
  }
}

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
