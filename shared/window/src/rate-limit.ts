import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { windowKeys } from "./redis/keys.ts";
import type { RedisLink } from "./redis/redis-link.ts";
import { unavailable } from "./unavailable.ts";

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
 * One limit of requests a minute and key, counted in Redis. The requests of one tick of the event loop that use the same
 * key are counted with one command, and the commands of all keys leave in one write; each request gets the place in the
 * count that it would have had alone.
 */
export class RateLimit {
  readonly #link: RedisLink;
  /** How many it allows. */
  readonly most: number;
  readonly #limiter: RateLimiterRedis;
  #waiting = new Map<string, Waiting[]>();

  constructor(link: RedisLink, name: string, most: number) {
    this.#link = link;
    this.most = most;
    this.#limiter = new RateLimiterRedis({
      storeClient: link.client,
      keyPrefix: `${windowKeys.limits}:${name}`,
      points: most,
      duration: RATE_WINDOW_SECONDS,
    });
  }

  /**
   * Counts one request.
   * @throws ServiceError `unavailable`: without Redis a request is refused as such, never as one over the limit.
   */
  use(key: string): Promise<Usage> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#ask());
      const waiting = this.#waiting.get(key);
      if (waiting === undefined) this.#waiting.set(key, [{ resolve, reject }]);
      else waiting.push({ resolve, reject });
    });
  }

  #ask(): void {
    const asked = this.#waiting;
    this.#waiting = new Map();
    this.#link.together(() => {
      for (const [key, waiting] of asked) void this.#count(key, waiting);
    });
  }

  async #count(key: string, waiting: readonly Waiting[]): Promise<void> {
    try {
      const { consumedPoints, msBeforeNext } = await this.#consume(key, waiting.length);
      waiting.forEach(({ resolve }, index) => {
        const used = consumedPoints - waiting.length + index + 1;
        resolve({
          allowed: used <= this.most,
          remaining: Math.max(this.most - used, 0),
          resetMs: msBeforeNext,
        });
      });
    } catch {
      for (const { reject } of waiting) reject(unavailable());
    }
  }

  /** The library rejects with its result when the limit is used up, and with an error when Redis did not answer. */
  async #consume(key: string, count: number): Promise<RateLimiterRes> {
    if (!this.#link.up) throw unavailable();
    return await this.#limiter.consume(key, count).catch((reason: unknown) => {
      if (reason instanceof RateLimiterRes) return reason;
      throw reason;
    });
  }
}

interface Waiting {
  readonly resolve: (usage: Usage) => void;
  readonly reject: (error: Error) => void;
}
