import RateLimiterRedis from "rate-limiter-flexible/lib/RateLimiterRedis.js";
import RateLimiterRes from "rate-limiter-flexible/lib/RateLimiterRes.js";
import { partitionKeys } from "../redis/keys.ts";
import { partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { placeOutOfReach } from "../redis/unavailable.ts";
import { OwnCounts } from "./own-counts.ts";

/** Every limit counts in fixed windows of a minute, over all gateways. Source: docs/protocol.md#limits. */
export const RATE_WINDOW_SECONDS = 60;

/** What is left of a limit, this request counted. */
export interface Usage {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the count begins again. */
  readonly resetMs: number;
}

/**
 * One limit of requests a minute and key, counted in Redis. A key that has used it up is refused by this process until its
 * minute ends, so a flood of refused requests does not reach Redis. While the partition of a key is out of reach, and others
 * are not, this process counts by itself: nothing else of a request needs that partition.
 */
export class RateLimit {
  readonly #limiter: RateLimiterRedis;
  readonly #partitions: number;
  readonly #name: string;
  /** How many it allows. */
  readonly most: number;
  readonly #usedUp = new UsedUp();
  readonly #own = new OwnCounts(RATE_WINDOW_SECONDS * 1000);

  constructor(options: {
    readonly link: RedisCalls;
    readonly partitions: number;
    readonly name: string;
    readonly most: number;
  }) {
    const { link, partitions, name, most } = options;
    this.#limiter = new RateLimiterRedis({
      storeClient: storeOf(link),
      keyPrefix: "",
      points: most,
      duration: RATE_WINDOW_SECONDS,
    });
    this.#partitions = partitions;
    this.#name = name;
    this.most = most;
  }

  /**
   * Counts one request.
   * @throws ServiceError `unavailable`: a request that no part of Redis can count is refused as such, never as one over the limit.
   */
  async use(key: string): Promise<Usage> {
    const left = this.#usedUp.msLeft(key);
    if (left !== undefined) return { allowed: false, remaining: 0, resetMs: left };
    const partition = partitionOf(key, this.#partitions);
    try {
      return usageOf(true, await this.#limiter.consume(partitionKeys.limit(partition, `${this.#name}:${key}`)));
    } catch (reason) {
      if (reason instanceof RateLimiterRes) return this.#refused(key, usageOf(false, reason));
      if (placeOutOfReach(reason) !== undefined) return this.#useOwn(key);
      throw reason;
    }
  }

  /** The same of a request that needs Redis for its limit alone: without Redis this process counts it. */
  async useAnyway(key: string): Promise<Usage> {
    return await this.use(key).catch(() => this.#useOwn(key));
  }

  #refused(key: string, usage: Usage): Usage {
    this.#usedUp.add(key, usage.resetMs);
    return usage;
  }

  #useOwn(key: string): Usage {
    const { used, resetMs } = this.#own.use(key);
    return { allowed: used <= this.most, remaining: Math.max(this.most - used, 0), resetMs };
  }
}

/** What `RateLimiterRedis` calls of a client: a link, with its deadlines, its scripts and its users' commands. */
function storeOf(link: RedisCalls) {
  return {
    rlflxIncr: ([key, points, seconds]: readonly [key: string, points: string, seconds: string]) =>
      link.run("use_limit", [key], [points, seconds]),
  };
}

function usageOf(allowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes): Usage {
  return { allowed, remaining: remainingPoints, resetMs: Math.min(msBeforeNext, RATE_WINDOW_SECONDS * 1000) };
}

/** Of more keys those that came first give way: they are counted in Redis again. */
const MOST_USED_UP = 10_000;

/**
 * Keys that have used up a limit, each until its minute ends. The library's own memory of them goes by a clock that may be set
 * back, has no bound, and keeps them longer.
 */
class UsedUp {
  readonly #keys = new Map<string, { readonly endsAt: number; readonly end: NodeJS.Timeout }>();

  /** Ms until the key's minute ends; undefined for a key that may have some of its limit left. */
  msLeft(key: string): number | undefined {
    const entry = this.#keys.get(key);
    return entry && Math.max(1, Math.ceil(entry.endsAt - performance.now()));
  }

  add(key: string, ms: number): void {
    this.#forget(key);
    const [first] = this.#keys.keys();
    if (this.#keys.size === MOST_USED_UP) this.#forget(first as string);
    const end = setTimeout(() => this.#forget(key), ms).unref();
    this.#keys.set(key, { endsAt: performance.now() + ms, end });
  }

  #forget(key: string): void {
    clearTimeout(this.#keys.get(key)?.end);
    this.#keys.delete(key);
  }
}
