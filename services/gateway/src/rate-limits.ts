import { HTTP_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import { windowKeys } from "@agent-relay/shared/window/keys.ts";
import type { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import { type RedisLink, unavailable } from "@agent-relay/shared/window/redis-link.ts";
import { anonymousId } from "@agent-relay/shared/window/visitors.ts";
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

const UNLIMITED: Usage = { allowed: true, remaining: Number.POSITIVE_INFINITY, resetMs: 0 };

/**
 * The limits of the gateway, in Redis. Addresses are kept as salted hashes and only while they count.
 * Every method throws RelayError `unavailable`: a limit that cannot be asked is never taken for one that is used up.
 * Source: protocol, section 9.
 */
export class RateLimits {
  readonly #window: ProcessWindow;
  readonly #apiKeys: RateLimiterRedis;
  readonly #failedKeys: RateLimiterRedis;
  readonly #addresses: RateLimiterRedis | null;

  constructor(options: {
    readonly link: RedisLink;
    readonly window: ProcessWindow;
    /** 0 = no limit. */
    readonly publicRequestsPerMinute: number;
  }) {
    const { link, publicRequestsPerMinute } = options;
    this.#window = options.window;
    this.#apiKeys = limiter(link, "api-key", HTTP_LIMITS.gatewayRequestsPerMinute);
    this.#failedKeys = limiter(link, "failed-key", HTTP_LIMITS.failedKeysPerMinute);
    this.#addresses = publicRequestsPerMinute === 0 ? null : limiter(link, "address", publicRequestsPerMinute);
  }

  /** @param apiKeyId the key's name in the keys file. */
  useApiKey(surface: SurfaceId, apiKeyId: string): Promise<Usage> {
    return consume(this.#apiKeys, `${surface}:${apiKeyId}`);
  }

  async failKey(address: string): Promise<Usage> {
    return await consume(this.#failedKeys, this.#hashed(address));
  }

  async useAddress(surface: SurfaceId, address: string): Promise<Usage> {
    if (this.#addresses === null) return UNLIMITED;
    return await consume(this.#addresses, `${surface}:${this.#hashed(address)}`);
  }

  #hashed(address: string): string {
    return anonymousId(this.#window.current.salt, "address", address);
  }
}

function limiter(link: RedisLink, name: string, points: number): RateLimiterRedis {
  return new RateLimiterRedis({
    storeClient: link.client,
    keyPrefix: `${windowKeys.limits}:${name}`,
    points,
    duration: RATE_WINDOW_SECONDS,
    rejectIfRedisNotReady: true,
  });
}

async function consume(limit: RateLimiterRedis, key: string): Promise<Usage> {
  try {
    return usageOf(true, await limit.consume(key));
  } catch (reason) {
    // The library rejects with its result when the limit is used up, and with an error when Redis did not answer.
    if (reason instanceof RateLimiterRes) return usageOf(false, reason);
    throw unavailable();
  }
}

function usageOf(allowed: boolean, result: RateLimiterRes): Usage {
  return { allowed, remaining: result.remainingPoints, resetMs: result.msBeforeNext };
}
