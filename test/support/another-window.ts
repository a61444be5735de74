import type { Redis } from "ioredis";
import { controlKeys, partitionKeys } from "window/redis/keys.ts";

/** Has another window be open than services know of, all that was in the last one being in it. Returns its id. */
export async function openAnotherWindow(client: Redis, partitions = 1): Promise<string> {
  const id = `win_${Math.random()}`;
  const windows = Array.from({ length: partitions }, (_, p) => partitionKeys.window(p));
  const opening = client.multi();
  for (const key of [controlKeys.window, ...windows]) opening.hset(key, "id", id);
  await opening.exec();
  return id;
}
