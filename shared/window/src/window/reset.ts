import slotOf from "cluster-key-slot";
import { controlKeys, KEY_PREFIX, PARTITION_TAGS, partitionKeys, prefixOf } from "../redis/keys.ts";
import { isUnavailable, type RedisCalls, type ServerLink, unavailable } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { WindowKeys } from "../redis/window-keys.ts";
import { findOrOpenWindow, type WindowIdentity } from "./process-window.ts";
import { beginWindow, isRecord, LAYOUT, lastWindowOf, readControl, readPartitions } from "./window-records.ts";

/** Keys that Redis scans in one step. */
const PAGE = 1000;

/**
 * Keys that outlive windows: the records of the last window, and the guards against repeats and floods. The guards
 * expire.
 */
const LASTING: ReadonlySet<string> = new Set([
  ...Object.values(controlKeys),
  ...PARTITION_TAGS.map((_, p) => partitionKeys.window(p)),
]);
const LASTING_PATTERN = /^relay:\{\w+\}:(?:seen:\d+$|pods$|(?:shares|limit|idempotency|idempotency-body):)/;
/** First part of a name, shared by all keys of one kind and generation. It ends with a time (window-keys.ts). */
const HEAD = /^relay:\{\w+\}:[a-z-]+:([0-9a-z]{8})(?=$|:)/;

/** What a reset deleted of earlier windows. */
interface Sweep {
  readonly deletedKeys: number;
  /** Partitions of the window that were out of reach. The next reset deletes the old keys there. */
  readonly leftPartitions: number;
}

/** Number of keys in the database that are not the relay's. @throws ServiceError `unavailable`. */
async function countForeignKeys({ links }: RedisCalls): Promise<number> {
  let foreign = 0;
  for (const link of links)
    for await (const keys of pages(link)) foreign += keys.filter((key) => !key.startsWith(KEY_PREFIX)).length;
  return foreign;
}

/**
 * Deletes the keys of earlier windows and of older versions, page by page. Keys of a later window stay. Keys of a
 * partition out of reach stay too, even if it answers by now: nobody knows which state it has.
 */
async function deleteOlderKeys(calls: RedisCalls, { startedAt, keys }: WindowIdentity): Promise<Sweep> {
  const isOlder = olderThan(startedAt, keys);
  const servers = keys.generations.map((known, p) => known !== null && calls.serverOf(partitionKeys.window(p)));
  const outOfReach = new Set<ServerLink>();
  let deletedKeys = 0;
  for (const link of calls.links) {
    try {
      for await (const page of pages(link)) {
        // One command for each slot, as a cluster requires.
        for (const inSlot of Map.groupBy(page.filter(isOlder), slotOf).values())
          deletedKeys += Number(await link.command("UNLINK", ...inSlot));
      }
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      outOfReach.add(link);
    }
  }
  return { deletedKeys, leftPartitions: servers.filter((server) => !server || outOfReach.has(server)).length };
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

/**
 * Result of a reset. The reset changed nothing if the database holds keys that are not the relay's (`foreign`), or if
 * newer services opened the window (`later_layout`).
 */
export type ResetOutcome =
  | ({ readonly outcome: "kept" | "opened"; readonly windowId: string } & Sweep)
  | { readonly outcome: "foreign"; readonly foreignKeys: number }
  | { readonly outcome: "later_layout"; readonly layout: number };

/**
 * Opens a new window if `deployId` or `partitions` differ from the window's, if its layout is earlier, or with `force`.
 * Then deletes the keys of earlier windows, except the guards against repeats. Resets may race and may stop anywhere:
 * the next one does the rest. No window is begun while a partition is out of reach. An opening that has begun ends
 * without partitions that are lost in between. Source: docs/redis.md#the-process-window.
 * @throws ServiceError `unavailable`.
 * @throws LinkDownError `partitions` if a reset with another number of partitions overtakes this one.
 */
export async function resetWindow(
  link: RedisCalls,
  options: { readonly partitions: number; readonly deployId: string; readonly force: boolean },
): Promise<ResetOutcome> {
  const { partitions, deployId, force } = options;
  for (let attempt = 0; attempt < REDIS_LIMITS.windowAttempts; attempt += 1) {
    const control = await readControl(link);
    const records = await readPartitions(link, PARTITION_TAGS.length);
    const last = lastWindowOf(control, records);
    const isSame = last?.deployId === deployId && last.partitions === partitions && last.layout === LAYOUT;
    if (isSame && !force) return await enter("kept", link, options);
    // A pod that was rolled back too far must not take the window away from newer services.
    if (last !== null && last.layout > LAYOUT && !force) return { outcome: "later_layout", layout: last.layout };
    const outOfReach = records.find((record) => !isRecord(record));
    if (outOfReach !== undefined) throw outOfReach;
    const foreignKeys = await countForeignKeys(link);
    if (foreignKeys > 0) return { outcome: "foreign", foreignKeys };
    const hasBegun = await beginWindow(link, control, records, { partitions, deployId, since: null });
    if (hasBegun) return await enter("opened", link, options);
  }
  throw unavailable();
}

async function enter(
  outcome: "kept" | "opened",
  link: RedisCalls,
  options: { readonly partitions: number; readonly deployId: string },
): Promise<ResetOutcome> {
  const window = await findOrOpenWindow(link, options);
  return { outcome, windowId: window.id, ...(await deleteOlderKeys(link, window)) };
}
