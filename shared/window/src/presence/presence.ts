import type { PresenceStatus, Severity } from "relay-protocol/contract/presence.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import { everyPartition, partitionOf, reachedOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/** Ends the record of a route whose connection is congested. */
export const CONGESTED = "!";

/**
 * The owner of a route: the first words of its record, `pod connection epoch seen_at since`, by which what is late is told.
 * Scripts alone read and write the whole record. Source: shared/window/src/lua/lib/route.lua.
 */
export interface RouteOwner {
  readonly pod: string;
  readonly connection: string;
  /** Null for whatever epoch. */
  readonly epoch: number | null;
}

export function formatRouteOwner({ pod, connection, epoch }: RouteOwner): string {
  return [pod, connection, ...(epoch === null ? [] : [epoch])].join(" ");
}

/** Presence as the window has it, by the clock of Redis. Source: docs/protocol.md#presence. */
export interface Presence {
  readonly status: PresenceStatus;
  /** Null when not seen. */
  readonly severity: Severity | null;
  /** Ms since the last register or heartbeat; null when not seen. */
  readonly staleMs: number | null;
  /** Unix ms; null when not seen. */
  readonly lastSeen: number | null;
  /** Since when one connection has held the agent online without a gap, epoch ms; null unless online. */
  readonly onlineSince: number | null;
  /** Ms until it has done so for the stability hold: 0 when it has; null unless online. */
  readonly stableInMs: number | null;
  /** Online on a connection that reads too slowly: nothing is delivered to it now. */
  readonly isCongested: boolean;
}

/** Counts of agents by severity: `ok` are online. */
export type PresenceCounts = Readonly<Record<Severity, number>>;

/** Of the partitions that could be reached. */
export type ReachedPresence = PresenceCounts & { readonly missing: readonly number[] };

const NOT_ONLINE = { onlineSince: null, stableInMs: null, isCongested: false } as const;

/**
 * What a last-seen time means. Pure.
 * @param heldSince when the connection that has the agent began to hold it; null when none has it.
 * @param isCongested of that connection.
 */
export function presenceOf(
  now: number,
  lastSeen: number | null,
  heldSince: number | null,
  offlineAfterMs: number,
  isCongested = false,
): Presence {
  const { staleAfterMs, criticalStaleAfterMs, forgetAfterMs, stabilityHoldMs } = PRESENCE_LIMITS;
  const staleMs = lastSeen === null ? null : Math.max(0, now - lastSeen);
  if (staleMs === null || staleMs > forgetAfterMs) {
    return { status: "not_seen", severity: null, staleMs: null, lastSeen: null, ...NOT_ONLINE };
  }
  if (heldSince !== null && staleMs <= staleAfterMs) {
    const stableInMs = Math.max(0, heldSince + stabilityHoldMs - now);
    return { status: "online", severity: "ok", staleMs, lastSeen, onlineSince: heldSince, stableInMs, isCongested };
  }
  if (staleMs > offlineAfterMs) return { status: "offline", severity: "offline", staleMs, lastSeen, ...NOT_ONLINE };
  const severity = staleMs <= criticalStaleAfterMs ? "stale" : "critical_stale";
  return { status: "stale", severity, staleMs, lastSeen, ...NOT_ONLINE };
}

/** Whether an envelope that is accepted now reaches the agent. */
export function canDeliverRealtime({ status, isCongested }: Presence): boolean {
  return status === "online" && !isCongested;
}

/** Presence of agents in Redis. Every method throws ServiceError `unavailable`. */
export class PresenceStore {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #offlineAfterMs: number;

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow; readonly offlineAfterMs: number }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#offlineAfterMs = options.offlineAfterMs;
  }

  async read(agent: string): Promise<Presence> {
    const p = partitionOf(agent, this.#window.partitions);
    const [now, lastSeen, heldSince, mark] = (await this.#window.read(p, ({ presence, online, route }) =>
      this.#link.run("read_presence", [presence, online, route], [agent]),
    )) as [string, string, string, string];
    const isCongested = mark === CONGESTED;
    return presenceOf(Number(now), timeOf(lastSeen), timeOf(heldSince), this.#offlineAfterMs, isCongested);
  }

  /** Those of the partitions that can be reached. @returns with the partitions that are missing. */
  async count(): Promise<ReachedPresence> {
    const each = everyPartition(this.#window.partitions).map((p) => this.countIn(p));
    const { found, missing } = await reachedOf(each);
    return { ...sumOfCounts(found), missing };
  }

  async countIn(partition: number): Promise<PresenceCounts> {
    const { staleAfterMs, criticalStaleAfterMs, forgetAfterMs } = PRESENCE_LIMITS;
    const limits = [staleAfterMs, criticalStaleAfterMs, this.#offlineAfterMs, forgetAfterMs];
    const [ok, stale, critical_stale, offline] = (await this.#window.read(partition, ({ presence, online }) =>
      this.#link.run("count_presence", [presence, online], limits),
    )) as [number, number, number, number];
    return { ok, stale, critical_stale, offline };
  }

  /** Forgets agents unseen for a day, some of each partition a call. */
  async prune(): Promise<void> {
    const limits = [PRESENCE_LIMITS.forgetAfterMs, REDIS_LIMITS.pruneBatch];
    const { keys } = await this.#window.known();
    const pruneIn = async (p: number) => {
      const { presence, online, route, acceptFrom } = keys.partition(p);
      await this.#link.run("prune_presence", [presence, online, route, acceptFrom], limits);
    };
    await Promise.all(everyPartition(this.#window.partitions).map(pruneIn));
  }
}

/** Pure. */
export function sumOfCounts(counts: readonly PresenceCounts[]): PresenceCounts {
  const sum = (severity: Severity) => counts.reduce((total, part) => total + part[severity], 0);
  return { ok: sum("ok"), stale: sum("stale"), critical_stale: sum("critical_stale"), offline: sum("offline") };
}

/** A time as scripts return it: empty where there is none. */
export function timeOf(text: string): number | null {
  return text === "" ? null : Number(text);
}
