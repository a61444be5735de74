import { OwnCounts } from "./own-counts.ts";
import { partitionKeys } from "./redis/keys.ts";
import { partitionOf } from "./redis/partitions.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";
import { placeOutOfReach, unavailable } from "./unavailable.ts";

/** Every limit counts in fixed windows of a minute, over all gateways. Source: docs/protocol.md#limits. */
export const RATE_WINDOW_SECONDS = 60;

/** What is left of a limit, this request counted. */
export interface Usage {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the count begins anew. */
  readonly resetMs: number;
}

/**
 * One limit of requests a minute and key, counted in Redis. The requests of one tick of the event loop are counted with one
 * call for each partition that their keys lie in; each gets the place in the count of its key that it would have had alone.
 * While that partition is out of reach, and others are not, this process counts by itself: nothing else of a request need lie there.
 */
export class RateLimit {
  readonly #link: RedisCalls;
  readonly #partitions: number;
  readonly #name: string;
  /** How many it allows. */
  readonly most: number;
  readonly #own = new OwnCounts(RATE_WINDOW_SECONDS * 1000);
  #waiting = new Map<string, Waiting[]>();

  constructor(options: {
    readonly link: RedisCalls;
    readonly partitions: number;
    readonly name: string;
    readonly most: number;
  }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#name = options.name;
    this.most = options.most;
  }

  /**
   * Counts one request.
   * @throws ServiceError `unavailable`: while no part of Redis answers a request is refused as such, never as one over the limit.
   */
  use(key: string): Promise<Usage> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#ask());
      const waiting = this.#waiting.get(key);
      if (waiting === undefined) this.#waiting.set(key, [{ resolve, reject }]);
      else waiting.push({ resolve, reject });
    });
  }

  /** The same of a request that needs Redis for its limit alone: without Redis this process counts it, too. */
  async useAnyway(key: string): Promise<Usage> {
    return await this.use(key).catch(() => this.#useOwn(key));
  }

  #ask(): void {
    const asked = this.#waiting;
    this.#waiting = new Map();
    const byPartition = Map.groupBy(asked, ([key]) => partitionOf(key, this.#partitions));
    for (const [p, ofPartition] of byPartition) void this.#count(p, ofPartition);
  }

  async #count(p: number, asked: readonly (readonly [key: string, waiting: readonly Waiting[]])[]): Promise<void> {
    const keys = asked.map(([key]) => partitionKeys.limit(p, `${this.#name}:${key}`));
    const counts = asked.map(([, waiting]) => waiting.length);
    try {
      const reply = await this.#link.run("use_limits", keys, [RATE_WINDOW_SECONDS * 1000, ...counts]);
      asked.forEach(([, waiting], index) => {
        const [used, resetMs] = (reply as [used: number, resetMs: number][])[index] as [number, number];
        waiting.forEach(({ resolve }, place) => {
          resolve(this.#usage(used - waiting.length + place + 1, resetMs));
        });
      });
    } catch (error) {
      const isOfPart = placeOutOfReach(error) !== undefined;
      const each = asked.flatMap(([key, waiting]) => waiting.map((one) => ({ key, ...one })));
      for (const { key, resolve, reject } of each) {
        if (isOfPart) resolve(this.#useOwn(key));
        else reject(unavailable());
      }
    }
  }

  #useOwn(key: string): Usage {
    const { used, resetMs } = this.#own.use(key);
    return this.#usage(used, resetMs);
  }

  #usage(used: number, resetMs: number): Usage {
    return { allowed: used <= this.most, remaining: Math.max(this.most - used, 0), resetMs };
  }
}

interface Waiting {
  readonly resolve: (usage: Usage) => void;
  readonly reject: (error: Error) => void;
}
