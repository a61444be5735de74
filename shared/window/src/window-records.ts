import { randomBytes } from "node:crypto";
import { controlKeys, partitionKeys } from "./redis/keys.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";

/**
 * What Redis keeps of a process window: one record in the control slot, one in each partition. Each change is a compare-and-set in
 * one slot, and may be made again. Every function throws ServiceError `unavailable`. Source: docs/redis.md#the-process-window.
 */

/** Of the control slot: which window there is. */
export interface ControlRecord {
  readonly id: string;
  /** When the window began, Unix ms: later than every one before. */
  readonly number: number;
  readonly deployId: string;
  readonly partitions: number;
  /** Another word is that of an older version. */
  readonly state: "opening" | "open" | "";
  /** True while partitions that are there keep their state in the opening. */
  readonly keeps: boolean;
  /** Empty when it was lost. */
  readonly salt: string;
}

/** Of one partition: the window that it is in, and the generation of its state, Unix ms too. A lost one has no id. */
export interface PartitionRecord {
  readonly id: string;
  readonly number: number;
  readonly generation: number;
}

/** A window that is to begin. */
export interface Beginning {
  readonly partitions: number;
  readonly deployId: string;
  readonly keeps: boolean;
}

/** Null when there is none. */
export async function readControl(link: RedisCalls): Promise<ControlRecord | null> {
  const reply = (await link.run("read_window", [controlKeys.window, controlKeys.salt])) as string[];
  if (reply.length === 0) return null;
  const [id, number, deployId, partitions, state, keeps, salt] = reply as [
    ...[string, string, string, string],
    ...[ControlRecord["state"], string, string],
  ];
  return { id, number: Number(number), deployId, partitions: Number(partitions), state, keeps: keeps === "1", salt };
}

export async function readPartitions(link: RedisCalls, partitions: number): Promise<PartitionRecord[]> {
  return await ofEach(partitions, async (p) =>
    recordOf(await link.command("HMGET", partitionKeys.window(p), "id", "number", "generation")),
  );
}

/**
 * Begins the opening of the next window, whose number is later than those of the last one and of all partitions.
 * @returns false when another one has taken the last one's place: nothing was done.
 */
export async function beginWindow(
  link: RedisCalls,
  last: ControlRecord | null,
  records: readonly PartitionRecord[],
  { partitions, deployId, keeps }: Beginning,
): Promise<boolean> {
  const highest = Math.max(0, ...records.map(({ number }) => number));
  const salt = randomBytes(16).toString("base64url");
  const args = [last?.id ?? "", highest, newWindowId(), deployId, partitions, keeps ? 1 : 0, salt];
  return (await link.run("begin_window", [controlKeys.window, controlKeys.salt], args)) === 1;
}

/** Takes every partition into a window that is being opened; one that is in a later window stays there. */
export async function raisePartitions(link: RedisCalls, control: ControlRecord): Promise<PartitionRecord[]> {
  const args = [control.id, control.number, control.keeps ? 1 : 0];
  return await ofEach(control.partitions, async (p) =>
    recordOf(await link.run("raise_window", [partitionKeys.window(p)], args)),
  );
}

/** @returns false when there is another window. */
export async function endOpening(link: RedisCalls, { id }: ControlRecord): Promise<boolean> {
  return (await link.run("open_window", [controlKeys.window], [id])) === 1;
}

function recordOf(reply: unknown): PartitionRecord {
  const [id, number, generation] = reply as (string | null)[];
  return { id: id ?? "", number: Number(number ?? 0), generation: Number(generation ?? 0) };
}

async function ofEach<T>(partitions: number, make: (partition: number) => Promise<T>): Promise<T[]> {
  return await Promise.all(Array.from({ length: partitions }, (_, p) => make(p)));
}

/** A random id; a window's name tells nothing about it. */
function newWindowId(): string {
  return `win_${randomBytes(12).toString("hex")}`;
}
