import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";

const SECONDS = CONNECTION_LIMITS.slowDownWindowMs / 1000;

/**
 * Decides when the client of a connection that is paused again and again is told so: when that took more than half of the
 * last ten seconds, and at most once in them. Source: docs/protocol.md#frames.
 */
export class SlowDown {
  /** Milliseconds of pauses in each of the last seconds, in a ring. */
  readonly #pausedMs = new Array<number>(SECONDS).fill(0);
  #second = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  /** So much of a pause is over. True when the client is to be told. @param now monotonic ms. */
  paused(pausedMs: number, now: number): boolean {
    this.#moveTo(Math.floor(now / 1000));
    this.#pausedMs[this.#second % SECONDS] = (this.#pausedMs[this.#second % SECONDS] as number) + pausedMs;
    const total = this.#pausedMs.reduce((sum, ms) => sum + ms, 0);
    const isSlow = total > CONNECTION_LIMITS.slowDownWindowMs * CONNECTION_LIMITS.slowDownShare;
    if (!isSlow || now - this.#toldAt < CONNECTION_LIMITS.slowDownWindowMs) return false;
    this.#toldAt = now;
    return true;
  }

  #moveTo(second: number): void {
    const gone = Math.min(second - this.#second, SECONDS);
    for (let n = 0; n < gone; n += 1) this.#pausedMs[(second - n) % SECONDS] = 0;
    this.#second = second;
  }
}
