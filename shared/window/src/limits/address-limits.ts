import { rateRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import { anonymousId } from "relay-runtime/anonymous-id.ts";
import { networkOf } from "relay-runtime/http/client-address.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { RateLimit } from "./rate-limit.ts";

/** The limits of the public surfaces, each with a count of its own for each address. */
export type PublicLimit = Extract<
  LimitName,
  "feedback" | "self_test" | "check_online" | "session_lookups" | "credential_lookups" | "target_reads"
>;

export interface AddressLimitsOptions {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly partitions: number;
  /** Of one address on each limited surface; 0 = no limit. */
  readonly requestsPerMinute: number;
  /** Called for each request that a limit refuses. */
  readonly limitReached: (limit: LimitName) => void;
}

/**
 * How often one address may ask a public surface, counted in Redis over all services. The address is kept as a hash under
 * the window's salt, and only while it counts. Source: docs/protocol.md#http.
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
   * @throws ServiceError `rate_limited` when the limit is reached; `unavailable` when Redis does not answer, of a self-test only
   * before the salt is known.
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

/** An address as Redis may see it. @throws ServiceError `unavailable`. */
export async function hashedAddress(window: ProcessWindow, address: string): Promise<string> {
  const { salt } = await window.known();
  return anonymousId(salt, "address", networkOf(address));
}
