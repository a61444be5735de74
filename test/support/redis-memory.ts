import type { Redis } from "ioredis";

const FILLER = "filler";
/** So much that what connections take besides moves the share by less than a hundredth. */
const FILLER_BYTES = 2 ** 25;

/** Fills Redis to this share of its memory; above 1 it is over its limit, and refuses writes. */
export async function fillTo(client: Redis, share: number): Promise<void> {
  if ((await client.strlen(FILLER)) === 0) await client.setrange(FILLER, FILLER_BYTES, "x");
  await client.config("SET", "maxmemory", String(Math.round((await usedBytes(client)) / share)));
}

/** Makes room again, under the limit that there is. */
export async function emptyAgain(client: Redis): Promise<void> {
  await client.del(FILLER);
}

/** Redis has no limit any more. */
export async function unlimited(client: Redis): Promise<void> {
  await client.config("SET", "maxmemory", "0");
  await client.del(FILLER);
}

async function usedBytes(client: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await client.info("memory"))?.[1]);
}
