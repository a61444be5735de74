import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { TokenBuckets } from "./rates.ts";

export interface TurnTaker {
  /** Identifies the client address. Addresses take turns, and so do the connections of one address. */
  readonly address: object;
  /** Takes in one text. */
  takeTurn(): void;
}

/** Milliseconds of the event loop that turns may take at once after an idle time. */
const BURST_MS = 50;

/**
 * Unregistered connections together get a tenth of the event loop. In each turn one text is taken in, by address and
 * then by connection. Ed25519 signatures checked on threads do not count. Source: docs/protocol.md#limits.
 */
export class FairScheduler {
  /** By address. The next address is first. */
  readonly #waiting = new Map<object, Set<TurnTaker>>();
  /** A token is a millisecond of the event loop. */
  readonly #budget = new TokenBuckets(1000 * CONNECTION_LIMITS.unregisteredLoopShare, BURST_MS);
  #fullAt = 0;
  #isScheduled = false;

  join(taker: TurnTaker): void {
    const ofAddress = this.#waiting.get(taker.address);
    if (ofAddress === undefined) this.#waiting.set(taker.address, new Set([taker]));
    else ofAddress.add(taker);
    this.#schedule();
  }

  leave(taker: TurnTaker): void {
    const ofAddress = this.#waiting.get(taker.address);
    if (ofAddress?.delete(taker) && ofAddress.size === 0) this.#waiting.delete(taker.address);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    const waitMs = this.#budget.wait(this.#fullAt, performance.now());
    // One text per turn of the event loop, so that other work comes in between.
    if (waitMs === 0) setImmediate(() => this.#run());
    else setTimeout(() => this.#run(), waitMs);
  }

  #run(): void {
    this.#isScheduled = false;
    const startedAt = performance.now();
    try {
      this.#next()?.takeTurn();
    } finally {
      const now = performance.now();
      this.#fullAt = this.#budget.take(this.#fullAt, now, now - startedAt);
      this.#schedule();
    }
  }

  /** Removes the next connection from the queue. If others of its address wait, the address goes to the end. */
  #next(): TurnTaker | undefined {
    for (const [address, ofAddress] of this.#waiting) {
      for (const taker of ofAddress) {
        this.#waiting.delete(address);
        ofAddress.delete(taker);
        if (ofAddress.size > 0) this.#waiting.set(address, ofAddress);
        return taker;
      }
    }
    return undefined;
  }
}
