import { randomBytes } from "node:crypto";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { everyPartition } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";

/**
 * What Redis keeps of a process window: one record in the control slot, one in each partition. Each change is a compare-and-set in
 * one slot, and may be made again. Every function throws ServiceError `unavailable`. Source: docs/redis.md#the-process-window.
 */

/** What the control slot and each partition say, so that the partitions know it when the control slot is lost. */
interface WindowRecord {
  readonly id: string;
  /** When the window began, Unix ms: later than every one before. */
  readonly number: number;
  readonly deployId: string;
  readonly partitions: number;
  /** Number of the last window that began with none of the state of before, this one or an older one. */
  readonly since: number;
  /** That of the version that opened it. */
  readonly layout: number;
}

/**
 * Of what Redis keeps: names, fields and channel lines. It changes when services of the version before and of this one cannot
 * share a window; those of another layout than the window's are not ready. Source: docs/upgrading.md#redis.
 */
export const LAYOUT = 1;

/** Of the control slot: which window there is. */
export interface ControlRecord extends WindowRecord {
  /** Another word is that of an older version. */
  readonly state: "opening" | "open" | "";
  /** Empty when it was lost. */
  readonly salt: string;
}

/** Of one partition: the window that it is in, and the generation of its state, Unix ms too. A lost one has no id. */
export interface PartitionRecord extends WindowRecord {
  readonly generation: number;
}

/** A record, or why its partition is out of reach. */
export type Reached = PartitionRecord | ServiceError;

/** A window that is to begin. */
export interface Beginning {
  readonly partitions: number;
  readonly deployId: string;
  /** Null where it begins with none of the state of before. */
  readonly since: number | null;
}

/** Null when there is none. */
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

/** @throws ServiceError `unavailable` when all of them are out of reach. */
export async function readPartitions(link: RedisCalls, partitions: number): Promise<Reached[]> {
  const fields = ["id", "number", "generation", "since", "deploy_id", "partitions", "layout"];
  return await ofEach(partitions, (p) => link.command("HMGET", partitionKeys.window(p), ...fields));
}

/**
 * What the last window was: the latest that the control slot and the partitions know of, since either may have lost something, also
 * to a replica that was behind. Null where they say that there was none.
 * @throws ServiceError `unavailable` when the only one that may know is out of reach.
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
 * Begins the opening of the next window, whose number is later than those of the last one and of all partitions.
 * @returns false when another one has taken the last one's place: nothing was done.
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
 * Takes every partition that is in reach into a window that is being opened; one that is in a later window stays there.
 * @throws ServiceError `unavailable` when all of them are out of reach.
 */
export async function raisePartitions(link: RedisCalls, control: ControlRecord): Promise<Reached[]> {
  const { id, number, since, deployId, partitions, layout } = control;
  const args = [id, number, since, deployId, partitions, layout];
  return await ofEach(partitions, (p) => link.run("raise_window", [partitionKeys.window(p)], args));
}

/** @returns false when there is another window. */
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

/** Versions before layouts were counted have the first one. */
function layoutOf(text: string): number {
  return text === "" ? 1 : Number(text);
}

/** A random id; a window's name tells nothing about it. */
function newWindowId(): string {
  return `win_${randomBytes(12).toString("hex")}`;
}
