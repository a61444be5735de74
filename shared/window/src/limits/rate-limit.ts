import RateLimiterRedis from "rate-limiter-flexible/lib/RateLimiterRedis.js";
import RateLimiterRes from "rate-limiter-flexible/lib/RateLimiterRes.js";
import { rateRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import { anonymousId, networkOf } from "relay-runtime/http/client-address.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { partitionKeys } from "../redis/keys.ts";
import { partitionOf } from "../redis/partitions.ts";
import { placeOutOfReach, type RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/**
 * Above this number the oldest keys of a window give way. A sender with so many keys is not bound by a limit per key
 * anyway.
 */
const MOST_KEYS = 10_000;

/** Requests by key that only this process counts. All keys share a window. Nothing is kept longer than a window. */
export class OwnCounts {
  readonly #windowMs: number;
  readonly #used = new Map<string, number>();
  /** Monotonic ms. */
  #endsAt = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Counts one request. */
  use(key: string): { readonly used: number; readonly resetMs: number } {
    if (this.#used.size === 0) this.#beginWindow();
    const used = (this.#used.get(key) ?? 0) + 1;
    const [first] = this.#used.keys();
    if (used === 1 && this.#used.size === MOST_KEYS) this.#used.delete(first as string);
    this.#used.set(key, used);
    return { used, resetMs: Math.max(1, Math.ceil(this.#endsAt - performance.now())) };
  }

  #beginWindow(): void {
    this.#endsAt = performance.now() + this.#windowMs;
    setTimeout(() => this.#used.clear(), this.#windowMs).unref();
  }
}

/** Every limit counts in fixed windows of a minute, across all gateways. Source: docs/protocol.md#limits. */
export const RATE_WINDOW_SECONDS = 60;

/** Rest of a limit after this request. */
export interface Usage {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Ms until the count begins again. */
  readonly resetMs: number;
}

/**
 * A limit of requests per minute and key, counted in Redis. After a key has used it up, this process refuses the key
 * until its minute ends. So a flood of refused requests does not reach Redis. While only the key's partition is out of
 * reach, this process counts by itself: nothing else in a request needs that partition.
 */
export class RateLimit {
  readonly #limiter: RateLimiterRedis;
  readonly #partitions: number;
  readonly #name: string;
  /** Number of allowed requests. */
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
   * @throws ServiceError `unavailable` if no part of Redis can count the request. It is never refused as over the
   * limit.
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

  /** Counts a request that needs Redis only for its limit. Without Redis this process counts it. */
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

/**
 * The client methods that `RateLimiterRedis` calls. They use the link, with its deadlines, its scripts and its users'
 * commands.
 */
function storeOf(link: RedisCalls) {
  return {
    rlflxIncr: ([key, points, seconds]: readonly [key: string, points: string, seconds: string]) =>
      link.run("use_limit", [key], [points, seconds]),
  };
}

function usageOf(allowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes): Usage {
  return { allowed, remaining: remainingPoints, resetMs: Math.min(msBeforeNext, RATE_WINDOW_SECONDS * 1000) };
}

/** Above this number the oldest keys give way. Redis counts them again. */
const MOST_USED_UP = 10_000;

/**
 * Keys that used up a limit, each until its minute ends. The library's own memory has no bound, keeps keys longer, and
 * uses a clock that may be set back.
 */
class UsedUp {
  readonly #keys = new Map<string, { readonly endsAt: number; readonly end: NodeJS.Timeout }>();

  /** Ms until the key's minute ends. Undefined for a key that may have some of its limit left. */
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

/** Limits of the public surfaces. Each address has its own count. */
export type PublicLimit = Extract<
  LimitName,
  "feedback" | "self_test" | "check_online" | "session_lookups" | "credential_lookups" | "target_reads"
>;

export interface AddressLimitsOptions {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly partitions: number;
  /** Per address and limited surface. 0 = no limit. */
  readonly requestsPerMinute: number;
  /** Runs for each request that a limit refuses. */
  readonly limitReached: (limit: LimitName) => void;
}

/**
 * Limits how often one address may ask a public surface, counted in Redis across all services. Only a hash of the
 * address under the window's salt is kept, and only while it counts. Source: docs/protocol.md#http.
 */
export class AddressLimits {
  readonly #window: ProcessWindow;
  readonly #limit: RateLimit | null;
  readonly #limitReached: (limit: LimitName) => void;

  constructor({ link, window, partitions, requestsPerMinute, limitReached }: AddressLimitsOptions) {
    this.#window = window;
    const limit = { link, partitions, name: "address", most: requestsPerMinute };
    this.#limit = requestsPerMinute === 0 ? null : new RateLimit(limit);
    this.#limitReached = limitReached;
  }

  /**
   * Counts a request.
   * @throws ServiceError `rate_limited` if the limit is reached.
   * @throws ServiceError `unavailable` if Redis does not answer. A self-test gets it only before the salt is known.
   */
  async use(name: PublicLimit, address: string): Promise<void> {
    if (this.#limit === null) return;
    const key = `${name}:${await hashedAddress(this.#window, address)}`;
    const usage = await (name === "self_test" ? this.#limit.useAnyway(key) : this.#limit.use(key));
    if (usage.allowed) return;
    this.#limitReached(name);
    throw new ServiceError("rate_limited", rateRefusal("public_requests", this.#limit.most, usage.resetMs));
  }
}

/** Hash of an address for Redis. @throws ServiceError `unavailable`. */
export async function hashedAddress(window: ProcessWindow, address: string): Promise<string> {
  const { salt } = await window.known();
  return anonymousId(salt, "address", networkOf(address));
}
