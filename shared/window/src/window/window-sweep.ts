import slotOf from "cluster-key-slot";
import { controlKeys, KEY_PREFIX, partitionKeys, prefixOf } from "../redis/keys.ts";
import { PARTITION_TAGS } from "../redis/partition-tags.ts";
import type { RedisCalls, ServerLink } from "../redis/redis-calls.ts";
import { isUnavailable } from "../redis/unavailable.ts";
import type { WindowKeys } from "../redis/window-keys.ts";
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

/** What was deleted of windows before. */
export interface Sweep {
  readonly deletedKeys: number;
  /** How many partitions of the window were out of reach: what windows before have left there, the next reset deletes. */
  readonly leftPartitions: number;
}

/** How many keys of the database are not the relay's. @throws ServiceError `unavailable`. */
export async function countForeignKeys({ links }: RedisCalls): Promise<number> {
  let foreign = 0;
  for (const link of links)
    for await (const keys of pages(link)) foreign += keys.filter((key) => !key.startsWith(KEY_PREFIX)).length;
  return foreign;
}

/**
 * Deletes what windows before this one, and older versions, have left, in pages; what a later window holds stays. So does all
 * that is out of reach, also of a partition that answers by now: nobody knows which state it has.
 */
export async function deleteOlderKeys(calls: RedisCalls, { startedAt, keys }: WindowIdentity): Promise<Sweep> {
  const isOlder = olderThan(startedAt, keys);
  const servers = keys.generations.map((known, p) => known !== null && calls.serverOf(partitionKeys.window(p)));
  const silent = new Set<ServerLink>();
  let deletedKeys = 0;
  for (const link of calls.links) {
    try {
      for await (const page of pages(link)) {
        // One command for each slot, as a cluster takes it.
        for (const inSlot of Map.groupBy(page.filter(isOlder), slotOf).values())
          deletedKeys += Number(await link.command("UNLINK", ...inSlot));
      }
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      silent.add(link);
    }
  }
  return { deletedKeys, leftPartitions: servers.filter((server) => !server || silent.has(server)).length };
}

function olderThan(startedAt: number, keys: WindowKeys): (key: string) => boolean {
  const heads = headsOf(keys);
  const unknown = keys.generations.flatMap((generation, p) => (generation === null ? [prefixOf(p)] : []));
  return (key) => {
    if (!key.startsWith(KEY_PREFIX) || LASTING.has(key) || LASTING_PATTERN.test(key)) return false;
    if (unknown.some((prefix) => key.startsWith(prefix))) return false;
    const [head, time] = HEAD.exec(key) ?? [];
    if (head === undefined || time === undefined) return true;
    return !heads.has(head) && Number.parseInt(time, 36) < startedAt;
  };
}

function headsOf(keys: WindowKeys): ReadonlySet<string> {
  const known = keys.generations.flatMap((generation, p) => (generation === null ? [] : [keys.partition(p)]));
  const names = [keys.whole, ...known].flatMap((each) => Object.values(each));
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
