import type { SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import {
  AddressLimits,
  type AddressLimitsOptions,
  hashedAddress,
  RateLimit,
  type Usage,
} from "relay-window/limits/rate-limit.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";

/** The rate limits of the gateway, counted in Redis: no answer is never taken for "limit reached". Source: docs/protocol.md#http. */
export class RateLimits {
  /** Those of the public surfaces. */
  readonly addresses: AddressLimits;
  readonly #window: ProcessWindow;
  readonly #apiKeys: RateLimit;
  readonly #failedKeys: RateLimit;
  readonly #limitReached: (limit: LimitName) => void;

  constructor(options: AddressLimitsOptions) {
    const { link, window, partitions, limitReached } = options;
    this.addresses = new AddressLimits(options);
    this.#window = window;
    this.#limitReached = limitReached;
    const limit = { link, partitions };
    this.#apiKeys = new RateLimit({ ...limit, name: "api-key", most: HTTP_LIMITS.gatewayRequestsPerMinute });
    this.#failedKeys = new RateLimit({ ...limit, name: "failed-key", most: HTTP_LIMITS.failedKeysPerMinute });
  }

  /** @param apiKeyId the key's name in the keys file. @throws ServiceError `unavailable` while no part of Redis answers. */
  async useApiKey(surface: SurfaceId, apiKeyId: string): Promise<Usage> {
    return this.#told("api_key_requests", await this.#apiKeys.use(`${surface}:${apiKeyId}`));
  }

  /** @throws ServiceError `unavailable` before the salt is known. */
  async countFailedKey(address: string): Promise<Usage> {
    return this.#told("failed_keys", await this.#failedKeys.useAnyway(await hashedAddress(this.#window, address)));
  }

  #told(name: LimitName, usage: Usage): Usage {
    if (!usage.allowed) this.#limitReached(name);
    return usage;
  }
}
