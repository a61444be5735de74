import type { PrincipalShares, SharedLimit } from "relay-window/limits/principal-bounds.ts";
import type { PodRates } from "./connection-rates.ts";
import type { PrincipalRates } from "./principal-rates.ts";

/**
 * Has the pod share the limits of principals that are above half of them here with the other pods where they are, too. What
 * comes in never waits for it: a renewal goes to Redis beside it, and one without an answer leaves the pod's own limit in
 * force. Of principals below half nothing is asked. Source: docs/architecture.md#shared-rates.
 */
export class ShareLeases {
  readonly #shares: Pick<PrincipalShares, "lease">;
  readonly #limits: readonly (readonly [SharedLimit, PrincipalRates])[];

  constructor(shares: Pick<PrincipalShares, "lease">, rates: Pick<PodRates, "principals" | "principalBytes">) {
    this.#shares = shares;
    this.#limits = [
      ["key_envelopes", rates.principals],
      ["key_bytes", rates.principalBytes],
    ];
  }

  /** Begins and renews leases; those of principals that are above half no more end by themselves. */
  async renew(): Promise<void> {
    await Promise.all(this.#limits.map(([limit, rates]) => this.#renew(limit, rates)));
  }

  async #renew(limit: SharedLimit, rates: PrincipalRates): Promise<void> {
    rates.share(await this.#shares.lease(limit, rates.aboveHalf(performance.now())));
  }
}
