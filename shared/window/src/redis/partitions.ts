import slotOf from "cluster-key-slot";
import { controlKeys, partitionKeys } from "./keys.ts";
import type { RedisCalls } from "./redis-calls.ts";

/** How many slots a Redis Cluster has. */
export const SLOTS = 16_384;

/** The slot of what is of the whole window. */
export const CONTROL_SLOT = slotOf(controlKeys.window);

/** The numbers of so many partitions. */
export function everyPartition(partitions: number): number[] {
  return Array.from({ length: partitions }, (_, p) => p);
}

/** Those of so many partitions whose server takes no calls. Nothing is asked of it: its link says so. */
export function outOfReach(redis: RedisCalls, partitions: number): number[] {
  return everyPartition(partitions).filter((p) => !redis.serverOf(partitionKeys.window(p))?.up);
}

/** The slot that a partition lies in. */
export function slotOfPartition(partition: number): number {
  return slotOf(partitionKeys.window(partition));
}

/**
 * The partition of an agent: the slot that Redis Cluster gives its id, modulo the number of partitions. An agent id holds no
 * braces, so no part of it is taken for a hash tag. Source: docs/redis.md#keys.
 */
export function partitionOf(agent: string, partitions: number): number {
  return partitions === 1 ? 0 : slotOf(agent) % partitions;
}

/**
 * How much of a limit on agents each partition takes. Agents fall into partitions by chance: three standard deviations above
 * the mean hardly any partition is full before the whole limit is reached. With one partition it is the limit itself.
 */
export function shareOf(limit: number, partitions: number): number {
  if (partitions === 1) return limit;
  const mean = limit / partitions;
  return Math.ceil(mean + 3 * Math.sqrt(mean));
}
