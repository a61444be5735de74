import type { Cluster, Redis } from "ioredis";
import { publishedOf } from "window/records/published.ts";
import { controlKeys, partitionKeys } from "window/redis/keys.ts";
import { type PartitionKeys, WindowKeys } from "window/redis/window-keys.ts";

/** Names of the keys of the window that is open, as it says itself. */
export async function windowKeysIn(client: Redis | Cluster, partitions = 1): Promise<WindowKeys> {
  const number = await client.hget(controlKeys.window, "number");
  const records = Array.from({ length: partitions }, (_, p) => partitionKeys.window(p));
  const generations = await Promise.all(records.map((record) => client.hget(record, "generation")));
  return new WindowKeys(Number(number), generations.map(Number));
}

/** The counters that acceptance moves, over all partitions. */
export async function countersIn(client: Redis | Cluster, partitions: number): Promise<Record<string, number>> {
  const keys = await windowKeysIn(client, partitions);
  const total: Record<string, number> = {};
  for (let p = 0; p < partitions; p += 1) {
    const counted = Object.entries(await countersOf(client, keys.partition(p)));
    for (const [name, n] of counted) total[name] = (total[name] ?? 0) + n;
  }
  return total;
}

/** The same of one. */
export async function countersOf(client: Redis | Cluster, keys: PartitionKeys): Promise<Record<string, number>> {
  const [published, counted] = [await countsIn(client, keys.published), await countsIn(client, keys.counters)];
  return Object.fromEntries(publishedOf(published, counted).counters);
}

async function countsIn(client: Redis | Cluster, key: string): Promise<Map<string, number>> {
  return new Map(Object.entries(await client.hgetall(key)).map(([name, n]) => [name, Number(n)]));
}
