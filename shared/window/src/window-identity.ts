import { LinkDownError } from "./redis/link-down.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";
import { WindowKeys } from "./redis/window-keys.ts";
import { unavailable } from "./unavailable.ts";
import {
  beginWindow,
  type ControlRecord,
  endOpening,
  type PartitionRecord,
  raisePartitions,
  readControl,
  readPartitions,
} from "./window-records.ts";

/** How often a window that was replaced meanwhile is followed by the next one, before that is refused. */
const ATTEMPTS = 5;

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
 * lost, the next is opened, in which the partitions that are there keep their state.
 * @param options.deployId of a window that follows none.
 * @throws LinkDownError `partitions` when the window has another number of them; ServiceError `unavailable`.
 */
export async function settleWindow(
  link: RedisCalls,
  { partitions, deployId }: { readonly partitions: number; readonly deployId: string },
): Promise<WindowIdentity> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const control = await readControl(link);
    if (control !== null) checkPartitions(control, partitions);
    const isOpening = control?.state === "opening";
    // After the control slot: a partition that is behind it then was lost, and is not one that is still to be raised.
    const records = isOpening ? await raisePartitions(link, control) : await readPartitions(link, partitions);
    if (control !== null && isWhole(control, records)) {
      // Where it is open already, too: whether this service can write here is part of the answer.
      if (await endOpening(link, control)) return identityOf(control, records);
    } else {
      const keeps = !isOpening || control.keeps;
      await beginWindow(link, control, records, { partitions, deployId: control?.deployId ?? deployId, keeps });
    }
  }
  throw unavailable();
}

/**
 * The same of who opens none.
 * @throws LinkDownError `partitions`; ServiceError `unavailable`, also while none is open.
 */
export async function readWindow(link: RedisCalls, partitions: number): Promise<WindowIdentity> {
  const control = await readControl(link);
  if (control === null) throw unavailable();
  checkPartitions(control, partitions);
  const records = await readPartitions(link, partitions);
  if (control.state !== "open" || !isWhole(control, records)) throw unavailable();
  return identityOf(control, records);
}

function checkPartitions(control: ControlRecord, partitions: number): void {
  if (control.partitions === partitions) return;
  const text = `the open window has ${control.partitions} partitions, RELAY_PARTITIONS is ${partitions}`;
  throw new LinkDownError("partitions", text);
}

/** Whether nothing of a window is missing: the salt is there, and each partition is in it. */
function isWhole({ id, state, salt }: ControlRecord, records: readonly PartitionRecord[]): boolean {
  return state !== "" && salt !== "" && records.every((record) => record.id === id);
}

function identityOf(control: ControlRecord, records: readonly PartitionRecord[]): WindowIdentity {
  const { id, number, deployId, salt, partitions } = control;
  const generations = records.map(({ generation }) => generation);
  return { id, startedAt: number, deployId, salt, partitions, keys: new WindowKeys(number, generations) };
}
