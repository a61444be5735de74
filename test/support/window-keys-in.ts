import type { Redis } from "ioredis";
import { controlKeys, partitionKeys } from "window/redis/keys.ts";
import { WindowKeys } from "window/redis/window-keys.ts";

/** Names of the keys of the window that is open, as it says itself. */
export async function windowKeysIn(client: Redis, partitions = 1): Promise<WindowKeys> {
  const number = await client.hget(controlKeys.window, "number");
  const records = Array.from({ length: partitions }, (_, p) => partitionKeys.window(p));
  const generations = await Promise.all(records.map((record) => client.hget(record, "generation")));
  return new WindowKeys(Number(number), generations.map(Number));
}
