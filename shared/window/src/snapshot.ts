import { SESSION_LIMITS, WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { parseSessionProof, type SessionProof } from "./records/session-proof.ts";
import { partitionKeys, windowKeys } from "./redis/keys.ts";
import type { RedisLink } from "./redis/redis-link.ts";
import type { Reply } from "./redis/scripts.ts";
import { unavailable } from "./unavailable.ts";

/** Named counts. */
export type Counts = ReadonlyMap<string, number>;

/**
 * The figures of the window, read in one step in each partition, so that those of one report add up. Bounded: at most
 * 20 KB a partition. Presence and journeys are read apart (presence.ts, journeys.ts).
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
 * Reads the window, one round trip a partition; all of it again when a reset came between them.
 * @throws ServiceError `unavailable`: no Redis, no window yet, or one that is reset again and again.
 */
export async function readSnapshot(link: RedisLink, partitions: number): Promise<WindowSnapshot> {
  const parts = (await readParts(link, partitions)) ?? (await readParts(link, partitions));
  if (parts === null) throw unavailable();
  const [first] = parts;
  const [id, startedAt, deployId] = first.window;
  if (id === "") throw unavailable();
  const online = parts.flatMap((part) => part.lastOnlineProof ?? []);
  return {
    now: first.now,
    windowId: id,
    windowStartedAt: Number(startedAt),
    deployId,
    counters: sum(parts.map((part) => part.counters)),
    minutes: withinLastHour(sum(parts.map((part) => part.minutes)), first.now),
    traffic: countsOf(first.rest[0]),
    surfaces: countsOf(first.rest[1]),
    feedback: countsOf(first.rest[2]),
    visitors: Number(first.rest[3]),
    proofs: newestFirst(parts.flatMap((part) => part.proofs)).slice(0, SESSION_LIMITS.retainedProofs),
    lastOnlineProof: newestFirst(online)[0] ?? null,
  };
}

interface Part {
  readonly now: number;
  readonly window: [id: string, startedAt: string, deployId: string];
  readonly counters: Counts;
  readonly minutes: Counts;
  readonly proofs: SessionProof[];
  readonly lastOnlineProof: SessionProof | null;
  readonly rest: readonly Reply[];
}

/** The parts of all partitions, or null when they are not of one window. */
async function readParts(link: RedisLink, partitions: number): Promise<readonly [Part, ...Part[]] | null> {
  const reads = Array.from({ length: partitions }, (_, p) => readPartition(link, p));
  const parts = (await Promise.all(reads)) as [Part, ...Part[]];
  return parts.every((part) => part.window[0] === parts[0].window[0]) ? parts : null;
}

const WHOLE_WINDOW_KEYS = [windowKeys.traffic, windowKeys.surfaces, windowKeys.feedback, windowKeys.visitors];

async function readPartition(link: RedisLink, p: number): Promise<Part> {
  const keys = [
    partitionKeys.window(p),
    partitionKeys.counters(p),
    partitionKeys.minutes(p),
    partitionKeys.proofs(p),
    partitionKeys.lastOnlineProof(p),
    ...(p === 0 ? WHOLE_WINDOW_KEYS : []),
  ];
  const [now, window, counters, minutes, proofs, last, ...rest] = (await link.run("snapshot", keys)) as [
    string,
    Part["window"],
    Reply,
    Reply,
    string[],
    string,
    ...Reply[],
  ];
  return {
    now: Number(now),
    window,
    counters: countsOf(counters),
    minutes: countsOf(minutes),
    proofs: proofs.map(parseSessionProof),
    lastOnlineProof: last === "" ? null : parseSessionProof(last),
    rest,
  };
}

function countsOf(reply: Reply | undefined): Counts {
  const flat = (reply ?? []) as string[];
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
