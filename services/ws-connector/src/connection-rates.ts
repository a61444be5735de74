import type { LimitName } from "runtime/metrics/catalogue.ts";
import { boundsFactorOf, type RateHolder } from "window/principal.ts";
import type { PrincipalRates } from "./principal-rates.ts";
import type { TokenBuckets } from "./token-bucket.ts";

/** The rates of a pod, the same for all its connections. */
export interface PodRates {
  /** Of envelopes, and as many pings, of a connection. */
  readonly envelopes: TokenBuckets;
  readonly bytes: TokenBuckets;
  readonly principals: PrincipalRates;
  /** Of bytes: large envelopes cost a pod far more than small ones. */
  readonly principalBytes: PrincipalRates;
}

/** How long a connection has to wait, and the limit that it waits for. */
export interface RateWait {
  readonly ms: number;
  readonly limit: LimitName;
}

/**
 * What a registered connection may still send, by its own rates and those of its holders. Times are monotonic ms. Every
 * connection has one: a list of its holders would take as much again.
 */
export class ConnectionRates {
  readonly #rates: PodRates;
  readonly #principal: RateHolder;
  /** Undefined where the principal is no issuer. */
  readonly #agent: RateHolder | undefined;
  /** When each bucket of the connection is full again. */
  #envelopesFullAt = 0;
  #pingsFullAt = 0;
  #bytesFullAt = 0;

  /** @param holders of the connection's first valid envelope. */
  constructor(rates: PodRates, holders: readonly RateHolder[]) {
    this.#rates = rates;
    [this.#principal, this.#agent] = holders as readonly [RateHolder, RateHolder?];
  }

  /** Takes the tokens of one envelope, which may wait for them. Returns null, or how long until they are there. */
  takeEnvelope(): RateWait | null {
    const { envelopes, principals } = this.#rates;
    const now = performance.now();
    const ms = envelopes.wait(this.#envelopesFullAt, now);
    this.#envelopesFullAt = envelopes.take(this.#envelopesFullAt, now);
    const sharedMs = this.#takeShares(principals, now, 1);
    return longer({ ms, limit: "envelopes" }, { ms: sharedMs, limit: "key_envelopes" });
  }

  /** Takes the tokens of bytes that are in already: what comes next waits. Returns null, or how long until there is one. */
  takeBytes(count: number): RateWait | null {
    const { bytes, principalBytes } = this.#rates;
    const now = performance.now();
    this.#bytesFullAt = bytes.take(this.#bytesFullAt, now, count);
    const ms = bytes.wait(this.#bytesFullAt, now);
    const sharedMs = this.#takeShares(principalBytes, now, count);
    return longer({ ms, limit: "bytes" }, { ms: sharedMs, limit: "key_bytes" });
  }

  /**
   * Why a text that was just read may not be taken in: other connections of a holder have used up its bytes. Those of
   * the text itself are taken when the whole chunk has been handed over.
   */
  waitForBytes(): RateWait | null {
    const { principalBytes } = this.#rates;
    const now = performance.now();
    const ofAgent = this.#agent === undefined ? 0 : principalBytes.wait(this.#agent, now);
    const ms = Math.max(principalBytes.wait(this.#principal, now), ofAgent);
    return ms === 0 ? null : { ms, limit: "key_bytes" };
  }

  /** False when there are no tokens for a ping. */
  takePing(): boolean {
    const { envelopes } = this.#rates;
    const now = performance.now();
    if (envelopes.wait(this.#pingsFullAt, now) > 0) return false;
    this.#pingsFullAt = envelopes.take(this.#pingsFullAt, now);
    return true;
  }

  /** Takes of every holder, whichever has to wait. Returns the longest wait. */
  #takeShares(rates: PrincipalRates, now: number, count: number): number {
    const ofPrincipal = rates.take(this.#principal, now, count * costOf(this.#principal), count);
    return this.#agent === undefined
      ? ofPrincipal
      : Math.max(ofPrincipal, rates.take(this.#agent, now, count * costOf(this.#agent), count));
  }
}

/** What one envelope, or byte, takes from the holder's bucket: a token, of an issuer 1/25 of one. */
function costOf(holder: RateHolder): number {
  return 1 / boundsFactorOf(holder);
}

function longer(own: RateWait, shared: RateWait): RateWait | null {
  const wait = shared.ms > own.ms ? shared : own;
  return wait.ms === 0 ? null : wait;
}
