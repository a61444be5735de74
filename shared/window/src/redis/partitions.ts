import slotOf from "cluster-key-slot";

/**
 * The partition of an agent: the slot that Redis Cluster gives its id, modulo the number of partitions. An agent id holds no
 * braces, so no part of it is taken for a hash tag. Source: docs/redis.md#keys.
 */
export function partitionOf(agent: string, partitions: number): number {
  return partitions === 1 ? 0 : slotOf(agent) % partitions;
}
