import { ServiceError } from "protocol/contract/errors.ts";
import { HTTP_LIMITS } from "protocol/contract/limits.ts";
import type { SurfaceId } from "protocol/contract/surfaces.ts";
import { anonymousId } from "runtime/anonymous-id.ts";
import { networkOf } from "runtime/http/client-address.ts";
import type { LimitName } from "runtime/metrics/catalogue.ts";
import type { ProcessWindow } from "window/process-window.ts";
import { RateLimit, type Usage } from "window/rate-limit.ts";
import type { RedisLink } from "window/redis/redis-link.ts";

/** The limits of the public surfaces, each with a count of its own for each address. */
export type PublicLimit = Extract<LimitName, "feedback" | "self_test" | "check_online" | "session_lookups">;

/**
 * The rate limits of the gateway, counted in Redis. An address is kept as a salted hash, and only while it counts.
 * Every method throws ServiceError `unavailable` when Redis does not answer: no answer is never taken for "limit reached".
 * Source: docs/protocol.md#http.
 */
export class RateLimits {
  readonly #window: ProcessWindow;
  readonly #apiKeys: RateLimit;
  readonly #failedKeys: RateLimit;
  readonly #addresses: RateLimit | null;
  readonly #limitReached: (limit: LimitName) => void;

  constructor(options: {
    readonly link: RedisLink;
    readonly window: ProcessWindow;
    /** 0 = no limit. */
    readonly publicRequestsPerMinute: number;
    /** Called for each request that a limit refuses. */
    readonly limitReached: (limit: LimitName) => void;
  }) {
    const { link, publicRequestsPerMinute } = options;
    this.#window = options.window;
    this.#limitReached = options.limitReached;
    this.#apiKeys = new RateLimit(link, "api-key", HTTP_LIMITS.gatewayRequestsPerMinute);
    this.#failedKeys = new RateLimit(link, "failed-key", HTTP_LIMITS.failedKeysPerMinute);
    this.#addresses = publicRequestsPerMinute === 0 ? null : new RateLimit(link, "address", publicRequestsPerMinute);
  }

  /** @param apiKeyId the key's name in the keys file. */
  async useApiKey(surface: SurfaceId, apiKeyId: string): Promise<Usage> {
    return await this.#use("api_key_requests", this.#apiKeys, `${surface}:${apiKeyId}`);
  }

  async countFailedKey(address: string): Promise<Usage> {
    return await this.#use("failed_keys", this.#failedKeys, this.#hashed(address));
  }

  /** Counts a request to a public surface. @throws ServiceError `rate_limited` when the limit is reached. */
  async useAddress(limit: PublicLimit, address: string): Promise<void> {
    if (this.#addresses === null) return;
    const usage = await this.#use(limit, this.#addresses, `${limit}:${this.#hashed(address)}`);
    if (!usage.allowed) throw rateLimited(usage);
  }

  async #use(name: LimitName, limit: RateLimit, key: string): Promise<Usage> {
    const usage = await limit.use(key);
    if (!usage.allowed) this.#limitReached(name);
    return usage;
  }

  #hashed(address: string): string {
    return anonymousId(this.#window.current.salt, "address", networkOf(address));
  }
}

export function rateLimited({ resetMs }: Usage): ServiceError {
  return new ServiceError("rate_limited", { retryAfterMs: resetMs });
}
