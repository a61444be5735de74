import type { Redis } from "ioredis";

/** Every key and every value of the database, whatever its type, as one text. @param pattern of the keys, if not all. */
export async function everythingIn(client: Redis, pattern = "*"): Promise<string> {
  const found: unknown[] = [];
  for (const key of (await client.keys(pattern)).sort()) found.push(key, await valueAt(client, key));
  return JSON.stringify(found);
}

/** Everything, again and again while `work` goes on. */
export async function everythingDuring(client: Redis, work: () => Promise<void>): Promise<string[]> {
  const seen: string[] = [];
  let isDone = false;
  const finished = work().finally(() => {
    isDone = true;
  });
  while (!isDone) seen.push(await everythingIn(client));
  await finished;
  return seen;
}

async function valueAt(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  if (type === "hash") return await client.hgetall(key);
  if (type === "set") return await client.smembers(key);
  if (type === "zset") return await client.zrange(key, "0", "-1", "WITHSCORES");
  if (type === "list") return await client.lrange(key, 0, -1);
  if (type === "string") return (await client.getBuffer(key))?.toString("latin1");
  // It was deleted, or ran out, since its name was read.
  if (type === "none") return null;
  throw new Error(`No reader for a ${type}.`);
}
