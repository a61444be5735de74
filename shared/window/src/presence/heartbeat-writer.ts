import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Logger } from "relay-runtime/logging.ts";
import {
  type AcceptanceItem,
  type AcceptanceObserver,
  GUARD_AHEAD_MS,
  guardBucketOf,
  guardDigestOf,
  type PresenceAcceptance,
  UNDONE,
  type Unavailable,
} from "../acceptance/acceptance.ts";
import { type AgentLimits, agentLimitArgs, limitsOfPartition } from "../limits/principals.ts";
import { keyNumbers, partitionKeys } from "../redis/keys.ts";
import { isUndone } from "../redis/link-state.ts";
import { partitionOf } from "../redis/partitions.ts";
import { placeIn, type RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import type { ProcessWindow, WindowIdentity } from "../window/process-window.ts";
import { KnownEpochs } from "./held-routes.ts";
import { CONGESTED, formatRouteOwner } from "./presence.ts";

/** A heartbeat of an agent that its connection owns. */
export interface OwnedHeartbeat {
  readonly item: Pick<
    AcceptanceItem,
    "envelope" | "connection" | "isCongested" | "credential" | "principal" | "hasNamespace"
  >;
  /** Epoch under which the connection owns the agent. */
  readonly epoch: number;
  /** When it arrived, monotonic ms. */
  readonly heardAt: number;
}

/** Null if the write does not settle the heartbeat: nothing was done, and acceptance decides. */
export type HeartbeatAnswer = PresenceAcceptance | Unavailable | null;

/**
 * Writes when agents were last heard, many heartbeats in one call. A write gives nobody an agent. It requires that pod,
 * connection and epoch match the owner of the route. Source: docs/redis.md#heartbeat-writer.
 */
export class HeartbeatWriter {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string;
  readonly #limits: AgentLimits;
  readonly #epochs: KnownEpochs;
  readonly #logger: Logger;
  #observer: AcceptanceObserver | undefined;

  constructor(
    options: Partial<AgentLimits> & {
      readonly link: RedisCalls;
      readonly window: ProcessWindow;
      readonly pod: string;
      /** Epochs that the pod shares with its other writers. */
      readonly epochs?: KnownEpochs;
      readonly logger: Logger;
    },
  ) {
    this.#link = options.link;
    this.#window = options.window;
    this.#pod = options.pod;
    this.#limits = limitsOfPartition(options, options.window.partitions);
    this.#epochs = options.epochs ?? new KnownEpochs(options.window.partitions);
    this.#logger = options.logger;
  }

  observe(observer: AcceptanceObserver): void {
    this.#observer = observer;
  }

  /** Number of partitions in the window. */
  get partitions(): number {
    return this.#window.partitions;
  }

  partitionOf(agent: string): number {
    return partitionOf(agent, this.#window.partitions);
  }

  /**
   * Sends the call before it returns, so that later calls find it done.
   * @param heartbeats of one partition, at most one call's worth.
   * @returns the answer to each heartbeat.
   */
  async write(partition: number, heartbeats: readonly OwnedHeartbeat[]): Promise<readonly HeartbeatAnswer[]> {
    try {
      const inWindow = (window: WindowIdentity) => this.#call(partition, window, heartbeats);
      // Waiting here for a window that is being entered would let a release overtake the heartbeats.
      const answers = (await inWindow(this.#window.current)) ?? (await this.#window.inWindow(inWindow));
      this.#observe(heartbeats, answers);
      return answers;
    } catch (err) {
      // The link has already logged a ServiceError.
      if (!(err instanceof ServiceError)) this.#logger.error({ err }, "a call for heartbeats failed");
      const failed = { ...(isUndone(err) ? UNDONE : { outcome: "unavailable" as const }), ...placeIn(err) };
      return heartbeats.map(() => failed);
    }
  }

  async #call(
    partition: number,
    { id, keys: names }: WindowIdentity,
    heartbeats: readonly OwnedHeartbeat[],
  ): Promise<HeartbeatAnswer[] | null> {
    const { presence, online, route, clock, counters } = names.partition(partition);
    const record = partitionKeys.window(partition);
    const keys = [record, presence, online, route, clock, counters];
    const numberOf = keyNumbers(keys);
    const endsAt = performance.now() + REDIS_LIMITS.commandTimeoutMs;
    const before = heartbeats.map(({ heardAt }) => Math.round(endsAt - heardAt));
    const args = [
      id,
      PRESENCE_LIMITS.staleAfterMs,
      PRESENCE_LIMITS.forgetAfterMs,
      GUARD_AHEAD_MS,
      this.#window.partitions === 1 ? 0 : this.#epochs.highestIn(partition),
      ...heartbeats.flatMap(({ item, epoch }, n) => {
        const bucket = guardBucketOf(partition, item);
        return [
          bucket.endsAt,
          numberOf(bucket.key),
          guardDigestOf(item.envelope),
          item.envelope.from,
          formatRouteOwner({ pod: this.#pod, connection: item.connection, epoch }),
          before[n] as number,
          item.isCongested?.() ? CONGESTED : "",
          this.#renewed(item, names.partition(partition), numberOf),
        ];
      }),
    ];
    const reply = await this.#link.runByDeadline("write_heartbeats", keys, args);
    if (reply[0] === "window") return null;
    const [, now, deadline, letters] = reply as [string, string, string, string];
    return heartbeats.map((heartbeat, n) => {
      if (letters.charAt(n) !== "t") return null;
      return accepted(heartbeat, Math.min(Number(now), Number(deadline) - (before[n] as number)));
    });
  }

  /**
   * The expiring keys of the agent beside its route, which the heartbeat renews: its place with the principal, and its
   * credentials.
   */
  #renewed(item: OwnedHeartbeat["item"], keys: PartitionKeys, numberOf: (key: string) => number): string {
    const [agents] = agentLimitArgs(item, keys, this.#limits, numberOf);
    if (agents === "" && item.credential === undefined) return "";
    const { credential, envelope } = item;
    const ofCredential = credential ? [numberOf(keys.credential(envelope.from)), credential.expiresAt] : [0, 0];
    return [agents || 0, ...ofCredential].join(" ");
  }

  #observe(heartbeats: readonly OwnedHeartbeat[], answers: readonly HeartbeatAnswer[]): void {
    try {
      heartbeats.forEach(({ item }, n) => {
        const answer = answers[n];
        if (answer) this.#observer?.settled(item, answer);
      });
    } catch (err) {
      this.#logger.error({ err }, "the observer of heartbeats failed");
    }
  }
}

/** @param lastSeen Unix ms by the clock of Redis. */
function accepted({ epoch, heardAt }: OwnedHeartbeat, lastSeen: number): PresenceAcceptance {
  return {
    outcome: "accepted",
    about: "presence",
    status: "online",
    lastSeen,
    heardAt,
    epoch,
    pending: [],
    decided: [],
  };
}
