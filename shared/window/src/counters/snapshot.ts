import { SESSION_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { everyPartition, reachedOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { PartitionKeys, WholeKeys } from "../redis/window-keys.ts";
import { parseSessionProof, type SessionProof } from "../sessions/session-records.ts";
import { type LostSince, lostSinceOf } from "../window/data-loss.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/** Counter of all published envelopes. */
const TOTAL = "published_envelopes";

/**
 * Adds up both counts of published envelopes. Source: shared/window/src/lua/accept/delivery.lua.
 * @param published counts of the kept minutes, by the field `minute counter`.
 * @param counted values of the counters, which have the older minutes.
 */
export function publishedOf(
  published: ReadonlyMap<string, number>,
  counted: ReadonlyMap<string, number>,
): { readonly counters: ReadonlyMap<string, number>; readonly minutes: ReadonlyMap<string, number> } {
  const [counters, minutes] = [new Map(counted), new Map<string, number>()];
  for (const [field, n] of published) {
    const [minute, counter] = field.split(" ") as [string, string];
    add(counters, TOTAL, n);
    add(counters, counter, n);
    add(minutes, minute, n);
  }
  return { counters, minutes };
}

function add(counts: Map<string, number>, name: string, n: number): void {
  counts.set(name, (counts.get(name) ?? 0) + n);
}

/** Named counts. */
export type Counts = ReadonlyMap<string, number>;

/**
 * Figures of the window. Each slot is read in one step, so the figures of one report add up. At most 20 KB per slot.
 * Presence and journeys are read separately (presence.ts, journeys.ts).
 */
export interface WindowSnapshot {
  /** Unix ms by the clock of Redis. */
  readonly now: number;
  readonly windowId: string;
  readonly windowStartedAt: number;
  readonly deployId: string;
  readonly partitions: number;
  /** Partitions out of reach. Their figures are missing. */
  readonly missing: readonly number[];
  /** Places that may lack data. */
  readonly lostSince: LostSince;
  /** Exact counts of acceptance. */
  readonly counters: Counts;
  /** Published envelopes of the last 60 minutes, by minute of Unix time. Minutes without envelopes are missing. */
  readonly minutes: Counts;
  readonly traffic: Counts;
  readonly surfaces: Counts;
  readonly feedback: Counts;
  /** An estimate with an error of about 1 %. */
  readonly visitors: number;
  /** Newest first, at most 25. Proofs between agents of one principal only fill places that other proofs leave. */
  readonly proofs: readonly SessionProof[];
  /** The last proof with an online target. */
  readonly lastOnlineProof: SessionProof | null;
}

/**
 * Reads the window from the partitions in reach, one round trip per slot, all at once. If another window was opened in
 * between, reads everything again.
 * @throws ServiceError `unavailable`: no Redis, no control slot, no window yet, or a window that is reset again and
 * again.
 */
export async function readSnapshot(link: RedisCalls, window: ProcessWindow): Promise<WindowSnapshot> {
  return await window.inWindow(async ({ id, keys, startedAt, deployId }) => {
    const reads = everyPartition(window.partitions).map(async (p) => await readPartition(link, p, keys.partition(p)));
    const [{ promoted, ...control }, { found: parts, missing }] = await Promise.all([
      readControl(link, keys.whole),
      reachedOf(reads),
    ]);
    if ([control, ...parts].some(({ windowId }) => windowId !== id)) return null;
    const online = parts.flatMap((part) => part.lastOnlineProof ?? []);
    return {
      ...control,
      windowStartedAt: startedAt,
      deployId,
      partitions: window.partitions,
      missing,
      lostSince: lostSinceOf(keys, promoted),
      counters: sum(parts.map((part) => part.counters)),
      minutes: withinLastHour(sum(parts.map((part) => part.minutes)), control.now),
      proofs: retained(parts),
      lastOnlineProof: newestFirst(online)[0] ?? null,
    };
  });
}

/** Counts for the whole window. */
type Control = Pick<WindowSnapshot, "now" | "windowId" | "traffic" | "surfaces" | "feedback" | "visitors"> & {
  /** The noted promotions. */
  readonly promoted: string;
};

/** Counts of one partition. */
type Part = Pick<WindowSnapshot, "windowId" | "counters" | "minutes" | "proofs" | "lastOnlineProof"> & {
  /** Proofs between agents of one principal. */
  readonly proofsWithin: readonly SessionProof[];
};

async function readControl(link: RedisCalls, { traffic, surfaces, feedback, visitors }: WholeKeys): Promise<Control> {
  const names = [controlKeys.window, traffic, surfaces, feedback, visitors];
  const [now, windowId, ...counted] = (await link.run("snapshot_control", names)) as [
    ...[string, string],
    ...[string[], string[], string[], number, string],
  ];
  return {
    now: Number(now),
    windowId,
    traffic: countsOf(counted[0]),
    surfaces: countsOf(counted[1]),
    feedback: countsOf(counted[2]),
    visitors: counted[3],
    promoted: counted[4],
  };
}

async function readPartition(link: RedisCalls, p: number, keys: PartitionKeys): Promise<Part> {
  const { lastOnlineProof, proofsWithin } = keys;
  const names = [partitionKeys.window(p), keys.counters, keys.published, keys.proofs, lastOnlineProof, proofsWithin];
  const [windowId, counters, published, proofs, last, within] = (await link.run("snapshot", names)) as [
    ...[string, string[], string[], string[], string, string[]],
  ];
  return {
    windowId,
    ...publishedOf(countsOf(published), countsOf(counters)),
    proofs: proofs.map(parseSessionProof),
    proofsWithin: within.map(parseSessionProof),
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

function retained(parts: readonly Part[]): SessionProof[] {
  const most = SESSION_LIMITS.retainedProofs;
  const others = newestFirst(parts.flatMap(({ proofs }) => proofs)).slice(0, most);
  const within = newestFirst(parts.flatMap(({ proofsWithin }) => proofsWithin)).slice(0, most - others.length);
  return newestFirst([...others, ...within]);
}

function newestFirst(proofs: readonly SessionProof[]): SessionProof[] {
  return proofs.toSorted((a, b) => b.acceptedAt - a.acceptedAt);
}
