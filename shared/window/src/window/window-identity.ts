import { REDIS_LIMITS } from "../redis/limits.ts";
import { LinkDownError } from "../redis/link-down.ts";
import { PARTITION_TAGS } from "../redis/partition-tags.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { unavailable } from "../redis/unavailable.ts";
import { type Generation, WindowKeys } from "../redis/window-keys.ts";
import {
  beginWindow,
  type ControlRecord,
  endOpening,
  isRecord,
  LAYOUT,
  lastWindowOf,
  type Reached,
  raisePartitions,
  readControl,
  readPartitions,
} from "./window-records.ts";

/** What names a process window. Source: docs/redis.md#the-process-window. */
export interface WindowIdentity {
  readonly id: string;
  /** Unix ms. */
  readonly startedAt: number;
  readonly deployId: string;
  /** Salt of visitor ids and address hashes; lives as long as the window, in memory and Redis only. */
  readonly salt: string;
  readonly partitions: number;
  readonly keys: WindowKeys;
}

/**
 * The window that is open. One that somebody began to open is opened to the end; where there is none, or a part of one was
 * lost, the next is opened, in which the partitions that are there keep their state. One that is out of reach is not lost: the
 * window is open without it.
 * @param options.deployId of a window that follows none.
 * @throws LinkDownError `partitions` when the window has another number of them, `layout` when it is another version's; ServiceError
 * `unavailable`.
 */
export async function findOrOpenWindow(
  link: RedisCalls,
  { partitions, deployId }: { readonly partitions: number; readonly deployId: string },
): Promise<WindowIdentity> {
  for (let attempt = 0; attempt < REDIS_LIMITS.windowAttempts; attempt += 1) {
    const control = await readControl(link);
    const records = await readOrRaise(link, control, partitions);
    const last = lastWindowOf(control, records);
    if (last !== null) checkFitting(last, partitions);
    if (control !== null && isWhole(control, records)) {
      // Where it is open already, too: whether this service can write here is part of the answer.
      if (await endOpening(link, control)) return identityOf(control, records);
      continue;
    }
    await beginWindow(link, control, records, last ?? { partitions, deployId, since: null });
  }
  throw unavailable();
}

/**
 * The same of who opens none.
 * @throws LinkDownError `partitions`, `layout`; ServiceError `unavailable`, also while none is open.
 */
export async function findWindow(link: RedisCalls, partitions: number): Promise<WindowIdentity> {
  const control = await readControl(link);
  if (control === null) throw unavailable();
  const records = await readRecords(link, control, partitions);
  checkFitting(lastWindowOf(control, records) ?? control, partitions);
  if (control.state !== "open" || !isWhole(control, records)) throw unavailable();
  return identityOf(control, records);
}

/** One window, of which two readings may have reached different partitions. The first of them where the second adds nothing. */
export function joinReadings(first: WindowIdentity, second: WindowIdentity): WindowIdentity {
  const [known, found] = [first.keys.generations, second.keys.generations];
  if (!found.some((generation, p) => generation !== null && known[p] === null)) return first;
  const generations = known.map((generation, p) => generation ?? (found[p] as Generation));
  return { ...first, keys: new WindowKeys(first.startedAt, generations) };
}

/** Who counts another number of partitions than the control slot, or has another layout, raises none. */
async function readOrRaise(link: RedisCalls, control: ControlRecord | null, partitions: number): Promise<Reached[]> {
  const isOurs = control?.partitions === partitions && control.layout === LAYOUT;
  if (isOurs && control.state === "opening") return await raisePartitions(link, control);
  return await readRecords(link, control, partitions);
}

/**
 * To be asked after the control slot: a partition that is behind it then was lost, and is not one that is still to be raised.
 * Where the control slot was lost, or says another number, any partition that there may be can say how many there are.
 */
async function readRecords(link: RedisCalls, control: ControlRecord | null, partitions: number): Promise<Reached[]> {
  return await readPartitions(link, control?.partitions === partitions ? partitions : PARTITION_TAGS.length);
}

/** @throws LinkDownError where this service would read and write what others do not. */
function checkFitting(last: Pick<ControlRecord, "partitions" | "layout">, partitions: number): void {
  if (last.layout !== LAYOUT) {
    throw new LinkDownError("layout", `the open window has layout ${last.layout}, that of this version is ${LAYOUT}`);
  }
  if (last.partitions === partitions) return;
  const text = `the open window has ${last.partitions} partitions, RELAY_PARTITIONS is ${partitions}`;
  throw new LinkDownError("partitions", text);
}

/** Whether nothing of a window was lost: the salt is there, and each partition that is in reach is in it. */
function isWhole({ id, state, salt }: ControlRecord, records: readonly Reached[]): boolean {
  return state !== "" && salt !== "" && records.every((record) => !isRecord(record) || record.id === id);
}

function identityOf(control: ControlRecord, records: readonly Reached[]): WindowIdentity {
  const { id, number, deployId, salt, partitions } = control;
  const generations = records.map((record) => (isRecord(record) ? record.generation : null));
  return { id, startedAt: number, deployId, salt, partitions, keys: new WindowKeys(number, generations) };
}
