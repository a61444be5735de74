import { randomBytes } from "node:crypto";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { everyPartition } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";

/**
 * Record of a process window in Redis: the fields of the record in the control slot and of that in each partition. So
 * the partitions know them if the control slot lost its record. Each change is a compare-and-set in one slot, and may
 * be repeated. Source: docs/redis.md#the-process-window.
 */
interface WindowRecord {
  readonly id: string;
  /** Unix ms: when the window began. Later than the number of every earlier window. */
  readonly number: number;
  readonly deployId: string;
  readonly partitions: number;
  /** Number of the last window that began without earlier state: this one or an older one. */
  readonly since: number;
  /** Layout of the version that opened the window. */
  readonly layout: number;
}

/**
 * Version of the data in Redis: names, fields and channel lines. It changes if services of the previous version and of
 * this one cannot share a window. Services whose layout is not the window's are not ready.
 * Source: docs/upgrading.md#redis.
 */
export const LAYOUT = 1;

/** Record in the control slot: the current window. */
export interface ControlRecord extends WindowRecord {
  /** Empty if it was lost. An older version may have written another word. */
  readonly state: "opening" | "open" | "";
  /** Empty if it was lost. */
  readonly salt: string;
}

/**
 * Record of one partition: the window that it is in, and the generation of its state in Unix ms. A lost record has no
 * id.
 */
interface PartitionRecord extends WindowRecord {
  readonly generation: number;
}

/** A record, or the error of a partition that is out of reach. */
export type Reached = PartitionRecord | ServiceError;

/** A window to begin. */
interface Beginning {
  readonly partitions: number;
  readonly deployId: string;
  /** Null to begin without earlier state. */
  readonly since: number | null;
}

/** @returns null if there is no window. @throws ServiceError `unavailable`. */
export async function readControl(link: RedisCalls): Promise<ControlRecord | null> {
  const reply = (await link.run("read_window", [controlKeys.window, controlKeys.salt])) as string[];
  if (reply.length === 0) return null;
  const [id, number, deployId, partitions, state, since, layout, salt] = reply as [
    ...[string, string, string, string],
    ...[ControlRecord["state"], string, string, string],
  ];
  const numbers = { number: Number(number), partitions: Number(partitions), since: Number(since) };
  return { id, deployId, state, salt, ...numbers, layout: layoutOf(layout) };
}

/** @throws ServiceError `unavailable` if all partitions are out of reach. */
export async function readPartitions(link: RedisCalls, partitions: number): Promise<Reached[]> {
  const fields = ["id", "number", "generation", "since", "deploy_id", "partitions", "layout"];
  return await ofEach(partitions, (p) => link.command("HMGET", partitionKeys.window(p), ...fields));
}

/**
 * The latest window that the control slot and the partitions know. Each of them may have lost data, also through a
 * promoted replica that was behind.
 * @returns null if all say that there was none.
 * @throws ServiceError `unavailable` if only a partition out of reach may know.
 */
export function lastWindowOf(control: ControlRecord | null, records: readonly Reached[]): WindowRecord | null {
  const ofPartitions = records.filter(isRecord).filter(({ partitions }) => partitions > 0);
  const known = control === null ? ofPartitions : [control, ...ofPartitions];
  const [latest] = known.toSorted((a, b) => b.number - a.number);
  if (latest !== undefined) return latest;
  const outOfReach = records.find((record) => !isRecord(record));
  if (outOfReach !== undefined) throw outOfReach;
  return null;
}

/**
 * Begins to open the next window. Its number is later than the last window's and every partition's.
 * @returns false if another window replaced the last one. Then nothing was done.
 * @throws ServiceError `unavailable`.
 */
export async function beginWindow(
  link: RedisCalls,
  last: ControlRecord | null,
  records: readonly Reached[],
  { partitions, deployId, since }: Beginning,
): Promise<boolean> {
  const highest = Math.max(0, ...records.filter(isRecord).map(({ number }) => number));
  const salt = randomBytes(16).toString("base64url");
  const args = [last?.id ?? "", highest, newWindowId(), deployId, partitions, since ?? "", salt, LAYOUT];
  return (await link.run("begin_window", [controlKeys.window, controlKeys.salt], args)) === 1;
}

/**
 * Takes every partition in reach into a window that is being opened. A partition in a later window stays there.
 * @throws ServiceError `unavailable` if all partitions are out of reach.
 */
export async function raisePartitions(link: RedisCalls, control: ControlRecord): Promise<Reached[]> {
  const { id, number, since, deployId, partitions, layout } = control;
  const args = [id, number, since, deployId, partitions, layout];
  return await ofEach(partitions, (p) => link.run("raise_window", [partitionKeys.window(p)], args));
}

/** @returns false if there is another window. @throws ServiceError `unavailable`. */
export async function endOpening(link: RedisCalls, { id }: ControlRecord): Promise<boolean> {
  return (await link.run("open_window", [controlKeys.window], [id])) === 1;
}

export function isRecord(reached: Reached): reached is PartitionRecord {
  return !(reached instanceof ServiceError);
}

async function ofEach(partitions: number, ask: (partition: number) => Promise<unknown>): Promise<Reached[]> {
  const records = await Promise.all(everyPartition(partitions).map((p) => reach(() => ask(p))));
  if (!records.some(isRecord)) throw records[0];
  return records;
}

async function reach(ask: () => Promise<unknown>): Promise<Reached> {
  try {
    return recordOf((await ask()) as (string | null)[]);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

function recordOf([id, number, generation, since, deployId, partitions, layout]: (string | null)[]): PartitionRecord {
  const numbers = { number: Number(number ?? 0), generation: Number(generation ?? 0), since: Number(since ?? 0) };
  const names = { id: id ?? "", deployId: deployId ?? "" };
  return { ...names, partitions: Number(partitions ?? 0), ...numbers, layout: layoutOf(layout ?? "") };
}

/** A record without a layout is from a version before layouts, which is layout 1. */
function layoutOf(text: string): number {
  return text === "" ? 1 : Number(text);
}

/** A random id, so that a window's name reveals nothing. */
function newWindowId(): string {
  return `win_${randomBytes(12).toString("hex")}`;
}
