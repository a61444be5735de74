import type { PresenceStatus, Severity } from "relay-protocol/contract/presence.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { everyPartition, partitionOf, reachedOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/** Last word in the route record of a congested connection. */
export const CONGESTED = "!";

/**
 * Owner of a route: the first words of its record `pod connection epoch seen_at since`. They show whether a late call
 * still means the present owner. Only scripts read and write whole records.
 * Source: shared/window/src/lua/lib/route.lua.
 */
interface RouteOwner {
  readonly pod: string;
  readonly connection: string;
  /** Null matches any epoch. */
  readonly epoch: number | null;
}

export function formatRouteOwner({ pod, connection, epoch }: RouteOwner): string {
  return [pod, connection, ...(epoch === null ? [] : [epoch])].join(" ");
}

/** Presence by the clock of Redis. Source: docs/protocol.md#presence. */
export interface Presence {
  readonly status: PresenceStatus;
  /** Null if not seen. */
  readonly severity: Severity | null;
  /** Ms since the last register or heartbeat. Null if not seen. */
  readonly staleMs: number | null;
  /** Unix ms. Null if not seen. */
  readonly lastSeen: number | null;
  /** Unix ms: since when one connection has held the agent online without a gap. Null unless online. */
  readonly onlineSince: number | null;
  /** Ms until the stability hold has passed, 0 if it has. Null unless online. */
  readonly stableInMs: number | null;
  /** Online on a connection that reads too slowly. The relay delivers nothing to it now. */
  readonly isCongested: boolean;
}

/** Numbers of agents by severity. `ok` counts online agents. */
export type PresenceCounts = Readonly<Record<Severity, number>>;

/** Counts of the partitions in reach. */
type ReachedPresence = PresenceCounts & { readonly missing: readonly number[] };

const NOT_ONLINE = { onlineSince: null, stableInMs: null, isCongested: false } as const;

/**
 * Presence from a last-seen time. Pure.
 * @param now Unix ms, as are `lastSeen` and `heldSince`.
 * @param heldSince when the agent's connection began to hold it. Null if no connection has it.
 * @param isCongested whether that connection is congested.
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

  /** Counts the agents of the partitions in reach. @returns the counts, and the partitions out of reach. */
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

  /** Forgets agents that were not seen for a day. One call forgets a bounded number per partition. */
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

/** Parses a time from a script. An empty text means none. */
export function timeOf(text: string): number | null {
  return text === "" ? null : Number(text);
}
