import { SESSION_LIMITS, WINDOW_LIMITS } from "../contract/limits.ts";
import type { DeliveryStatus } from "../contract/presence.ts";
import type { ProofSource } from "../contract/session.ts";
import { type Journey, journeyOf } from "./journeys.ts";
import { partitionKeys, windowKeys } from "./keys.ts";
import { type RedisLink, type Reply, unavailable } from "./redis-link.ts";

/** An accepted session request, as it is retained. Times are epoch ms. */
export interface SessionProof {
  readonly sessionId: string;
  readonly requester: string;
  readonly target: string;
  readonly acceptedAt: number;
  readonly targetStatus: DeliveryStatus;
  readonly source: ProofSource;
}

/** Named counts. */
export type Counts = ReadonlyMap<string, number>;

/** What the reports are computed from: one bounded read of the window. */
export interface WindowSnapshot {
  /** Epoch ms by the clock of Redis. */
  readonly now: number;
  readonly windowId: string;
  readonly windowStartedAt: number;
  readonly deployId: string;
  /** Moved by acceptance; exact. */
  readonly counters: Counts;
  /** Published envelopes of the last 60 minutes, by minute since the epoch; a minute without any is left out. */
  readonly minutes: Counts;
  readonly traffic: Counts;
  readonly surfaces: Counts;
  readonly feedback: Counts;
  /** An estimate, about 1 % off. */
  readonly visitors: number;
  /** Newest first, at most 25. */
  readonly proofs: readonly SessionProof[];
  readonly lastOnlineProof: SessionProof | null;
  /** The visitors seen last, the latest first, at most 200. */
  readonly journeys: readonly Journey[];
}

/**
 * Reads the window, one round trip a partition.
 * @throws RelayError `unavailable`: no Redis, or no window yet.
 */
export async function readSnapshot(link: RedisLink, partitions: number): Promise<WindowSnapshot> {
  const parts = await Promise.all(Array.from({ length: partitions }, (_, p) => readPartition(link, p)));
  const [first] = parts as [Part, ...Part[]];
  const [id, startedAt, deployId] = first.window;
  if (id === "") throw unavailable();
  const online = parts.flatMap((part) => part.lastOnlineProof ?? []);
  return {
    now: first.now,
    windowId: id,
    windowStartedAt: Number(startedAt),
    deployId,
    counters: sum(parts.map((part) => part.counters)),
    minutes: lately(sum(parts.map((part) => part.minutes)), first.now),
    traffic: countsOf(first.rest[0]),
    surfaces: countsOf(first.rest[1]),
    feedback: countsOf(first.rest[2]),
    visitors: Number(first.rest[3]),
    journeys: (first.rest[4] as string[]).map(journeyOf).sort((a, b) => b.lastSeen - a.lastSeen),
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

const WHOLE_WINDOW_KEYS = [
  windowKeys.traffic,
  windowKeys.surfaces,
  windowKeys.feedback,
  windowKeys.visitors,
  windowKeys.journeys,
];

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
    proofs: proofs.map(proofOf),
    lastOnlineProof: last === "" ? null : proofOf(last),
    rest,
  };
}

function proofOf(text: string): SessionProof {
  const [sessionId, requester, target, acceptedAt, targetStatus, source] = text.split(" ") as [
    ...[string, string, string, string],
    DeliveryStatus,
    ProofSource,
  ];
  return { sessionId, requester, target, acceptedAt: Number(acceptedAt), targetStatus, source };
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

/** Old minutes stay in a partition until it publishes again. */
function lately(minutes: Counts, now: number): Counts {
  const oldest = Math.floor(now / 60_000) - WINDOW_LIMITS.minutes;
  return new Map([...minutes].filter(([minute]) => Number(minute) > oldest));
}

function newestFirst(proofs: readonly SessionProof[]): SessionProof[] {
  return proofs.toSorted((a, b) => b.acceptedAt - a.acceptedAt);
}
