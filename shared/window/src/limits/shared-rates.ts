import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { partitionKeys } from "../redis/keys.ts";
import { partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import { holderDigestOf, type RateHolder } from "./principals.ts";

/** A limit that pods share. Each holder has its own. */
export type SharedLimit = Extract<LimitName, "key_envelopes" | "key_bytes">;

/**
 * Leases by which pods share the limits of principals, one call per partition.
 * Source: docs/architecture.md#shared-rates.
 */
export class PrincipalShares {
  readonly #link: RedisCalls;
  readonly #partitions: number;
  readonly #pod: string;

  constructor(options: { readonly link: RedisCalls; readonly partitions: number; readonly pod: string }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#pod = options.pod;
  }

  /**
   * Begins or renews leases of this pod.
   * @returns by holder, how many pods share its limit, including this one. Holders without an answer of Redis are
   * missing.
   */
  async lease(limit: SharedLimit, holders: readonly RateHolder[]): Promise<Map<RateHolder, number>> {
    const digests = holders.map((holder) => ({ holder, digest: holderDigestOf(holder) }));
    const byPartition = Map.groupBy(digests, ({ digest }) => partitionOf(digest, this.#partitions));
    const calls = [...byPartition].map(async ([p, ofPartition]) => {
      const keys = ofPartition.map(({ digest }) => partitionKeys.shares(p, limit, digest));
      const pods = (await this.#link.run("lease_shares", keys, [this.#pod, REDIS_LIMITS.shareLeaseMs])) as number[];
      return ofPartition.map(({ holder }, n) => [holder, pods[n] as number] as const);
    });
    const answers = await Promise.allSettled(calls);
    return new Map(answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])));
  }
}
