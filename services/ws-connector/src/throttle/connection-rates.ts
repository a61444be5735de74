import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { boundsFactorOf, type Principal, type RateHolder, rateHoldersOf } from "relay-window/limits/principals.ts";
import type { PrincipalRates } from "./principal-rates.ts";
import type { TokenBuckets } from "./token-bucket.ts";

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
