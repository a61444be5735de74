import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { TokenBuckets } from "./rates.ts";

export interface TurnTaker {
  /** Stands for its client address: addresses take turns, and then the connections of each. */
  readonly address: object;
  /** Takes in one text. */
  takeTurn(): void;
}

/** Milliseconds of the event loop that turns may take at once, after a time without any. */
const BURST_MS = 50;

/**
 * The unregistered connections of a pod that have a text to be taken in. All together they get a share of the event loop
 * for all that comes before the signature is checked, which is most of it, whatever they send; what a worker finds of an
 * Ed25519 signature is answered outside it. Within the share each address, and each connection of an address, has one text
 * taken in at a time.
 * Source: docs/protocol.md#limits.
 */
export class FairScheduler {
  /** By address; who is next stands first. */
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
    // One text a turn of the event loop: everything else comes in between.
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

  /** Takes who is next from the queue; its address, where others wait, goes to the end. */
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
