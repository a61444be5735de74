import { HTTP_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import { networkOf } from "@agent-relay/shared/http/client-address.ts";
import type { LimitName } from "@agent-relay/shared/metrics/catalogue.ts";
import type { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { anonymousId } from "@agent-relay/shared/window/visitors.ts";
import { Limit, type Usage } from "./limit.ts";

/** The limits of the public surfaces, each with a count of its own for each address. */
export type PublicLimit = Extract<LimitName, "feedback" | "self_test" | "check_online" | "session_lookups">;

const UNLIMITED: Usage = { allowed: true, remaining: Number.POSITIVE_INFINITY, resetMs: 0 };

/**
 * The limits of the gateway, in Redis. Addresses are kept as salted hashes and only while they count.
 * Every method throws RelayError `unavailable`: a limit that cannot be asked is never taken for one that is used up.
 * Source: protocol, section 9.
 */
export class RateLimits {
  readonly #window: ProcessWindow;
  readonly #apiKeys: Limit;
  readonly #failedKeys: Limit;
  readonly #addresses: Limit | null;
  readonly #struck: (limit: LimitName) => void;

  constructor(options: {
    readonly link: RedisLink;
    readonly window: ProcessWindow;
    /** 0 = no limit. */
    readonly publicRequestsPerMinute: number;
    /** Told of each request that a limit refuses. */
    readonly struck: (limit: LimitName) => void;
  }) {
    const { link, publicRequestsPerMinute } = options;
    this.#window = options.window;
    this.#struck = options.struck;
    this.#apiKeys = new Limit(link, "api-key", HTTP_LIMITS.gatewayRequestsPerMinute);
    this.#failedKeys = new Limit(link, "failed-key", HTTP_LIMITS.failedKeysPerMinute);
    this.#addresses = publicRequestsPerMinute === 0 ? null : new Limit(link, "address", publicRequestsPerMinute);
  }

  /** @param apiKeyId the key's name in the keys file. */
  useApiKey(surface: SurfaceId, apiKeyId: string): Promise<Usage> {
    return this.#noted("api_key_requests", this.#apiKeys.use(`${surface}:${apiKeyId}`));
  }

  async failKey(address: string): Promise<Usage> {
    return await this.#noted("failed_keys", this.#failedKeys.use(this.#hashed(address)));
  }

  async useAddress(limit: PublicLimit, address: string): Promise<Usage> {
    if (this.#addresses === null) return UNLIMITED;
    return await this.#noted(limit, this.#addresses.use(`${limit}:${this.#hashed(address)}`));
  }

  async #noted(limit: LimitName, asked: Promise<Usage>): Promise<Usage> {
    const usage = await asked;
    if (!usage.allowed) this.#struck(limit);
    return usage;
  }

  #hashed(address: string): string {
    return anonymousId(this.#window.current.salt, "address", networkOf(address));
  }
}
