import { PARTITION_TAGS } from "relay-window/redis/keys.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import type { Span } from "../../accounting.ts";
import { median } from "../../report.ts";
import { PRIMARIES } from "../systems/redis-cluster.ts";
import { REDIS } from "../systems/system.ts";

/** What the loads on a Redis Cluster have in common. One Redis is the first setting of each. */

export const ONE_REDIS = "one Redis";
/** The number of partitions that is advised. Source: docs/operations.md#scale. */
export const ADVISED = 12;

/** As many in each of 24 partitions, and so of 12 and of 4. */
const TARGETS_EACH = 5;

export function titleOf(partitions: number): string {
  return `three primaries, ${partitions} ${partitions === 1 ? "partition" : "partitions"}`;
}

/** No shard is busier than another by chance. */
export function evenTargets(): string[] {
  const targets: string[] = [];
  const missing = new Map(PARTITION_TAGS.map((_, partition) => [partition, TARGETS_EACH]));
  for (let n = 0; missing.size > 0; n += 1) {
    const name = `agent://load.target-${n}`;
    const partition = partitionOf(name, PARTITION_TAGS.length);
    const left = missing.get(partition);
    if (left === undefined) continue;
    targets.push(name);
    if (left === 1) missing.delete(partition);
    else missing.set(partition, left - 1);
  }
  return targets;
}

/** What came through, and what it took. */
export type Load = Span & { readonly delivered: number };

export type Figure = (span: Span) => number;

export function perEnvelope(load: Load, figure: Figure): number {
  return figure(load) / load.delivered;
}

/** What an envelope took to what it took of one Redis in the same round; the middle of the rounds. */
export function toOneRedis(loads: readonly Load[], ofOneRedis: readonly Load[], figure: Figure): number {
  return median(
    loads.map((load, round) => {
      const one = ofOneRedis[round];
      return perEnvelope(load, figure) / (one === undefined ? Number.NaN : perEnvelope(one, figure));
    }),
  );
}

export function allRedis(span: Span): number {
  return redisMicros(span).reduce((sum, micros) => sum + micros, 0);
}

export function busiest(span: Span): number {
  return Math.max(...redisMicros(span));
}

function redisMicros({ cpu }: Span): number[] {
  return [REDIS, ...PRIMARIES].flatMap((name) => cpu[name] ?? []);
}
