import slotOf from "cluster-key-slot";
import { controlKeys, KEY_PREFIX, partitionKeys } from "./redis/keys.ts";
import { PARTITION_TAGS } from "./redis/partition-tags.ts";
import type { RedisCalls, ServerLink } from "./redis/redis-calls.ts";
import type { WindowIdentity } from "./window-identity.ts";

/** How many keys Redis looks at in one step. */
const PAGE = 1000;

/** What outlives windows: the records of the last one, and what guards against repeats and floods, which ends by itself. */
const LASTING: ReadonlySet<string> = new Set([
  ...Object.values(controlKeys),
  ...PARTITION_TAGS.map((_, p) => partitionKeys.window(p)),
]);
const LASTING_PATTERN = /^relay:\{\w+\}:(?:seen:\d+$|pods$|(?:shares|limit|idempotency|idempotency-body):)/;
/** The part of a name that all keys of one kind and generation share, which ends with a time: window-keys.ts. */
const HEAD = /^relay:\{\w+\}:[a-z-]+:([0-9a-z]{8})(?=$|:)/;

/** How many keys of the database are not the relay's. @throws ServiceError `unavailable`. */
export async function countForeignKeys({ links }: RedisCalls): Promise<number> {
  let foreign = 0;
  for (const link of links)
    for await (const keys of pages(link)) foreign += keys.filter((key) => !key.startsWith(KEY_PREFIX)).length;
  return foreign;
}

/**
 * Deletes what windows before this one, and older versions, have left, in pages; what a later window holds stays.
 * @returns how many keys. @throws ServiceError `unavailable`.
 */
export async function deleteOlderKeys({ links }: RedisCalls, window: WindowIdentity): Promise<number> {
  const heads = headsOf(window);
  let deleted = 0;
  for (const link of links) {
    for await (const keys of pages(link)) {
      const older = keys.filter((key) => isOlder(key, window.startedAt, heads));
      // One command for each slot, as a cluster takes it.
      for (const inSlot of Map.groupBy(older, slotOf).values())
        deleted += Number(await link.command("UNLINK", ...inSlot));
    }
  }
  return deleted;
}

function isOlder(key: string, startedAt: number, heads: ReadonlySet<string>): boolean {
  if (!key.startsWith(KEY_PREFIX) || LASTING.has(key) || LASTING_PATTERN.test(key)) return false;
  const [head, time] = HEAD.exec(key) ?? [];
  if (head === undefined || time === undefined) return true;
  return !heads.has(head) && Number.parseInt(time, 36) < startedAt;
}

function headsOf({ keys }: WindowIdentity): ReadonlySet<string> {
  const names = [keys.whole, ...keys.partitions].flatMap((each) => Object.values(each));
  return new Set(names.map((name) => HEAD.exec(typeof name === "function" ? name("") : name)?.[0] as string));
}

async function* pages(link: ServerLink): AsyncGenerator<readonly string[]> {
  let cursor = "0";
  do {
    const [next, keys] = (await link.command("SCAN", cursor, "COUNT", PAGE)) as [string, string[]];
    yield keys;
    cursor = next;
  } while (cursor !== "0");
}
