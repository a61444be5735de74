import { SESSION_LIMITS, WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { parseSessionProof, type SessionProof } from "./records/session-proof.ts";
import { controlKeys, partitionKeys } from "./redis/keys.ts";
import type { RedisLink } from "./redis/redis-link.ts";
import { unavailable } from "./unavailable.ts";

/** Named counts. */
export type Counts = ReadonlyMap<string, number>;

/**
 * The figures of the window, read in one step in each slot, so that those of one report add up. Bounded: at most
 * 20 KB a slot. Presence and journeys are read apart (presence.ts, journeys.ts).
 */
export interface WindowSnapshot {
  /** Unix ms by the clock of Redis. */
  readonly now: number;
  readonly windowId: string;
  readonly windowStartedAt: number;
  readonly deployId: string;
  /** Moved by acceptance; exact. */
  readonly counters: Counts;
  /** Published envelopes of the last 60 minutes, by minute of Unix time; a minute without any is left out. */
  readonly minutes: Counts;
  readonly traffic: Counts;
  readonly surfaces: Counts;
  readonly feedback: Counts;
  /** An estimate, about 1 % off. */
  readonly visitors: number;
  /** Newest first, at most 25. */
  readonly proofs: readonly SessionProof[];
  readonly lastOnlineProof: SessionProof | null;
}

/**
 * Reads the window, one round trip a slot, all at once; all of it again when a reset came between them.
 * @throws ServiceError `unavailable`: no Redis, no window yet, or one that is reset again and again.
 */
export async function readSnapshot(link: RedisLink, partitions: number): Promise<WindowSnapshot> {
  const read = (await readWindow(link, partitions)) ?? (await readWindow(link, partitions));
  if (read === null || read.control.windowId === "") throw unavailable();
  const { control, parts } = read;
  const online = parts.flatMap((part) => part.lastOnlineProof ?? []);
  return {
    ...control,
    counters: sum(parts.map((part) => part.counters)),
    minutes: withinLastHour(sum(parts.map((part) => part.minutes)), control.now),
    proofs: newestFirst(parts.flatMap((part) => part.proofs)).slice(0, SESSION_LIMITS.retainedProofs),
    lastOnlineProof: newestFirst(online)[0] ?? null,
  };
}

/** What is counted for the whole window. */
type Control = Omit<WindowSnapshot, "counters" | "minutes" | "proofs" | "lastOnlineProof">;

/** What one partition counts. */
type Part = Pick<WindowSnapshot, "windowId" | "counters" | "minutes" | "proofs" | "lastOnlineProof">;

/** Null when what was read is not of one window. */
async function readWindow(
  link: RedisLink,
  partitions: number,
): Promise<{ readonly control: Control; readonly parts: readonly Part[] } | null> {
  const reads = Array.from({ length: partitions }, (_, p) => readPartition(link, p));
  const [control, parts] = await Promise.all([readControl(link), Promise.all(reads)]);
  return parts.every(({ windowId }) => windowId === control.windowId) ? { control, parts } : null;
}

async function readControl(link: RedisLink): Promise<Control> {
  const { window, traffic, surfaces, feedback, visitors } = controlKeys;
  const keys = [window, traffic, surfaces, feedback, visitors];
  const [now, [windowId, startedAt, deployId], ...counted] = (await link.run("snapshot_control", keys)) as [
    string,
    [string, string, string],
    ...[string[], string[], string[], number],
  ];
  return {
    now: Number(now),
    windowId,
    windowStartedAt: Number(startedAt),
    deployId,
    traffic: countsOf(counted[0]),
    surfaces: countsOf(counted[1]),
    feedback: countsOf(counted[2]),
    visitors: counted[3],
  };
}

async function readPartition(link: RedisLink, p: number): Promise<Part> {
  const keys = [
    partitionKeys.window(p),
    partitionKeys.counters(p),
    partitionKeys.minutes(p),
    partitionKeys.proofs(p),
    partitionKeys.lastOnlineProof(p),
  ];
  const [windowId, counters, minutes, proofs, last] = (await link.run("snapshot", keys)) as [
    ...[string, string[], string[], string[], string],
  ];
  return {
    windowId,
    counters: countsOf(counters),
    minutes: countsOf(minutes),
    proofs: proofs.map(parseSessionProof),
    lastOnlineProof: last === "" ? null : parseSessionProof(last),
  };
}

function countsOf(flat: readonly string[]): Counts {
  const counts = new Map<string, number>();
  for (let index = 0; index < flat.length; index += 2) counts.set(flat[index] as string, Number(flat[index + 1]));
  return counts;
}

function sum(parts: readonly Counts[]): Counts {
  const total = new Map<string, number>();
  for (const part of parts) for (const [name, n] of part) total.set(name, (total.get(name) ?? 0) + n);
  return total;
}

/** A partition drops its old minutes only when it publishes again. */
function withinLastHour(minutes: Counts, now: number): Counts {
  const oldest = Math.floor(now / 60_000) - WINDOW_LIMITS.minutes;
  return new Map([...minutes].filter(([minute]) => Number(minute) > oldest));
}

function newestFirst(proofs: readonly SessionProof[]): SessionProof[] {
  return proofs.toSorted((a, b) => b.acceptedAt - a.acceptedAt);
}
