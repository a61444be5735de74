import { REDIS_LIMITS } from "../redis/limits.ts";
import { PARTITION_TAGS } from "../redis/partition-tags.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { unavailable } from "../redis/unavailable.ts";
import { findOrOpenWindow } from "./window-identity.ts";
import { beginWindow, isRecord, LAYOUT, lastWindowOf, readControl, readPartitions } from "./window-records.ts";
import { countForeignKeys, deleteOlderKeys, type Sweep } from "./window-sweep.ts";

/**
 * What a reset did. Nothing was touched where it is `foreign`: the database holds keys that are not the relay's; or `later_layout`: the
 * window is of services that are newer than this reset.
 */
export type ResetOutcome =
  | ({ readonly outcome: "kept" | "opened"; readonly windowId: string } & Sweep)
  | { readonly outcome: "foreign"; readonly foreignKeys: number }
  | { readonly outcome: "later_layout"; readonly layout: number };

/**
 * Opens a new window when `deployId` or `partitions` differ from the window's, or its layout is an earlier one, or with `force`; safe to race, and to be ended
 * anywhere: who comes next does the rest. Then deletes what windows before have left, but what guards against repeats. No window
 * is begun while any partition is out of reach; one that has begun is opened without those that are lost meanwhile.
 * Source: docs/redis.md#the-process-window.
 * @throws ServiceError `unavailable`; LinkDownError `partitions` when a reset with another number of them overtakes it.
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
    // A pod that was rolled back too far must not take the window from services that it knows nothing of.
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
