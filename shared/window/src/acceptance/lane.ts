import { REDIS_LIMITS } from "../redis/limits.ts";
import type { PlacedItem } from "./acceptance.ts";

/**
 * The queue of one partition, of which one call at a time is under way. Calls begin at least `gatherMs` apart, so that what comes
 * in meanwhile goes together, unless one is full before: what comes alone to a lane that was idle for so long goes at once.
 */
export class Lane {
  readonly partition: number;
  /** True from the first item that waits until none does. */
  isRunning = false;
  readonly #gatherMs: number;
  readonly #waiting: PlacedItem[] = [];
  /** When the last call was made up, monotonic ms. */
  #calledAt = Number.NEGATIVE_INFINITY;
  /** Ends the wait for the next call; undefined while nothing waits for it. */
  #endWait: (() => void) | undefined;

  constructor(partition: number, gatherMs: number) {
    this.partition = partition;
    this.#gatherMs = gatherMs;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  push(item: PlacedItem): void {
    this.#waiting.push(item);
    if (this.#isFull) this.#endWait?.();
  }

  /** Undefined where the next call may begin now, else resolves when it may. */
  untilDue(): Promise<void> | undefined {
    const waitMs = this.#calledAt + this.#gatherMs - performance.now();
    if (waitMs <= 0 || this.#isFull) return undefined;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** What the next call carries. Of two items with one claim the second waits for the call after it, which replays. */
  takeBatch(): PlacedItem[] {
    this.#calledAt = performance.now();
    this.#endWait = undefined;
    const claims = new Set<string>();
    let bytes = 0;
    let size = 0;
    for (const { text, claim } of this.#waiting) {
      if (size === REDIS_LIMITS.acceptanceBatch || bytes > REDIS_LIMITS.acceptanceBatchBytes) break;
      if (claim !== undefined && claims.has(claim.digest)) break;
      if (claim !== undefined) claims.add(claim.digest);
      bytes += text.length;
      size += 1;
    }
    return this.#waiting.splice(0, size);
  }

  takeAll(): PlacedItem[] {
    return this.#waiting.splice(0);
  }

  get #isFull(): boolean {
    return this.#waiting.length >= REDIS_LIMITS.acceptanceBatch;
  }
}
