import { PRESENCE_LIMITS, REDIS_LIMITS } from "../contract/limits.ts";
import type { PresenceStatus, Severity } from "../contract/presence.ts";
import { partitionKeys } from "./keys.ts";
import { partitionOf } from "./partitions.ts";
import type { RedisLink } from "./redis-link.ts";

/** Presence as the window has it, by the clock of Redis. Source: protocol, section 7. */
export interface Presence {
  readonly status: PresenceStatus;
  /** Null when not seen. */
  readonly severity: Severity | null;
  /** Ms since the last register or heartbeat; null when not seen. */
  readonly staleMs: number | null;
  /** Epoch ms; null when not seen. */
  readonly lastSeen: number | null;
}

/** Counts of agents by severity: `ok` are online. */
export type PresenceCounts = Readonly<Record<Severity, number>>;

/**
 * What a last-seen time means. Pure.
 * @param connected a live connection has the agent.
 */
export function presenceOf(now: number, lastSeen: number | null, connected: boolean, offlineAfterMs: number): Presence {
  const staleMs = lastSeen === null ? null : Math.max(0, now - lastSeen);
  if (staleMs === null || staleMs > PRESENCE_LIMITS.forgetAfterMs) {
    return { status: "not_seen", severity: null, staleMs: null, lastSeen: null };
  }
  if (connected && staleMs <= PRESENCE_LIMITS.staleAfterMs)
    return { status: "online", severity: "ok", staleMs, lastSeen };
  if (staleMs > offlineAfterMs) return { status: "offline", severity: "offline", staleMs, lastSeen };
  const severity = staleMs <= PRESENCE_LIMITS.criticalStaleAfterMs ? "stale" : "critical_stale";
  return { status: "stale", severity, staleMs, lastSeen };
}

/** Presence of agents in Redis. Every method throws RelayError `unavailable`. */
export class PresenceBoard {
  readonly #link: RedisLink;
  readonly #partitions: number;
  readonly #offlineAfterMs: number;

  constructor(options: { readonly link: RedisLink; readonly partitions: number; readonly offlineAfterMs: number }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#offlineAfterMs = options.offlineAfterMs;
  }

  async read(agent: string): Promise<Presence> {
    const p = partitionOf(agent, this.#partitions);
    const keys = [partitionKeys.presence(p), partitionKeys.online(p)];
    const [now, lastSeen, connected] = (await this.#link.run("read_presence", keys, [agent])) as [
      string,
      string,
      string,
    ];
    return presenceOf(Number(now), lastSeen === "" ? null : Number(lastSeen), connected === "1", this.#offlineAfterMs);
  }

  async count(): Promise<PresenceCounts> {
    const { staleAfterMs, criticalStaleAfterMs, forgetAfterMs } = PRESENCE_LIMITS;
    const limits = [staleAfterMs, criticalStaleAfterMs, this.#offlineAfterMs, forgetAfterMs];
    const counts = (await Promise.all(
      this.#eachPartition((p) =>
        this.#link.run("count_presence", [partitionKeys.presence(p), partitionKeys.online(p)], limits),
      ),
    )) as number[][];
    const sum = (index: number) => counts.reduce((total, part) => total + (part[index] ?? 0), 0);
    return { ok: sum(0), stale: sum(1), critical_stale: sum(2), offline: sum(3) };
  }

  /** Forgets agents unseen for a day, some of each partition a call. */
  async prune(): Promise<void> {
    const limits = [PRESENCE_LIMITS.forgetAfterMs, REDIS_LIMITS.pruneBatch];
    await Promise.all(
      this.#eachPartition((p) =>
        this.#link.run(
          "prune_presence",
          [partitionKeys.presence(p), partitionKeys.online(p), partitionKeys.route(p)],
          limits,
        ),
      ),
    );
  }

  #eachPartition<T>(read: (partition: number) => T): T[] {
    return Array.from({ length: this.#partitions }, (_, p) => read(p));
  }
}
