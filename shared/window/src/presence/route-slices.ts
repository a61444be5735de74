import { REDIS_LIMITS } from "../redis/limits.ts";
import { partitionOf } from "../redis/partitions.ts";

const { routesBatch } = REDIS_LIMITS;

/** What is about agents, by the partition of each, so many at a time. */
export function inSlices<T extends { readonly agent: string }>(
  items: readonly T[],
  partitions: number,
): (readonly [partition: number, slice: readonly T[]])[] {
  const byPartition = Map.groupBy(items, ({ agent }) => partitionOf(agent, partitions));
  return [...byPartition].flatMap(([p, ofPartition]) =>
    Array.from({ length: Math.ceil(ofPartition.length / routesBatch) }, (_, n) => {
      return [p, ofPartition.slice(n * routesBatch, (n + 1) * routesBatch)] as const;
    }),
  );
}
