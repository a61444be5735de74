import type { Cluster, Redis } from "ioredis";
import { controlKeys, partitionKeys } from "window/redis/keys.ts";
import { WindowKeys } from "window/redis/window-keys.ts";

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
    for (const [name, n] of Object.entries(await client.hgetall(keys.partition(p).counters))) {
      total[name] = (total[name] ?? 0) + Number(n);
    }
  }
  return total;
}
