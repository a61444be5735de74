import { windowKeys } from "@agent-relay/shared/window/keys.ts";
import { type RedisLink, unavailable } from "@agent-relay/shared/window/redis-link.ts";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";

/** Every limit counts in fixed windows of a minute, over all gateways. */
export const RATE_WINDOW_SECONDS = 60;

/** What is left of a limit, this request counted. */
export interface Usage {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the whole limit is there again. */
  readonly resetMs: number;
}

/**
 * One limit of so many requests a minute, in Redis. What a tick brings in for one key is counted in one step, and all
 * keys of the tick leave in one write; each request gets the place in the count that it would have had alone.
 */
export class Limit {
  readonly #link: RedisLink;
  readonly #points: number;
  readonly #limiter: RateLimiterRedis;
  #waiting = new Map<string, Waiting[]>();

  constructor(link: RedisLink, name: string, points: number) {
    this.#link = link;
    this.#points = points;
    this.#limiter = new RateLimiterRedis({
      storeClient: link.client,
      keyPrefix: `${windowKeys.limits}:${name}`,
      points,
      duration: RATE_WINDOW_SECONDS,
    });
  }

  /** @throws RelayError `unavailable`: a limit that cannot be asked is never taken for one that is used up. */
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
    const { up, client } = this.#link;
    if (up) client.stream.cork();
    for (const [key, waiting] of asked) void this.#count(key, waiting);
    if (up) client.stream.uncork();
  }

  async #count(key: string, waiting: readonly Waiting[]): Promise<void> {
    try {
      const { consumedPoints, msBeforeNext } = await this.#consume(key, waiting.length);
      waiting.forEach(({ resolve }, index) => {
        const used = consumedPoints - waiting.length + index + 1;
        resolve({
          allowed: used <= this.#points,
          remaining: Math.max(this.#points - used, 0),
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
