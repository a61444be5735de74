import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import {
  type AgentBringer,
  type AgentLimits,
  agentLimitArgs,
  limitsOfPartition,
  NOT_KNOWN,
} from "../limits/principals.ts";
import { keyNumbers, partitionKeys } from "../redis/keys.ts";
import { partitionOf } from "../redis/partitions.ts";
import { type RedisCalls, unavailable } from "../redis/redis-calls.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { type CredentialRecord, formatCredentials } from "./credentials.ts";
import { CONGESTED } from "./presence.ts";
import { inSlices, type Route } from "./routes.ts";

/**
 * The highest epoch of each partition that a pod knows of. Its registers, heartbeats and restored routes carry it, and the clock that gives
 * epochs rises to it: so a replica that took over, and lacks the last of them, gives none twice.
 */
export class KnownEpochs {
  readonly #highest: number[];

  constructor(partitions: number) {
    this.#highest = Array(partitions).fill(0);
  }

  /** @param epoch given for the agent. */
  note(agent: string, epoch: number): void {
    const p = partitionOf(agent, this.#highest.length);
    if (epoch > this.highestIn(p)) this.#highest[p] = epoch;
  }

  /** 0 while none is known. */
  highestIn(partition: number): number {
    return this.#highest[partition] as number;
  }
}

/** The credentials that a connection holds for an agent. */
export interface HeldCredentials {
  /** The newest first. */
  readonly records: readonly CredentialRecord[];
  /** Unix ms: when the last of them ends. */
  readonly expiresAt: number;
}

/** A route that a connection holds, as far as its pod knows. */
export interface HeldRoute extends Route, AgentBringer {
  readonly epoch: number;
  /** When a register or heartbeat of the agent was last accepted, or before: monotonic ms. */
  readonly heardAt: number;
  readonly isCongested: boolean;
  /** Those that hold; undefined where the key of the agent is listed. */
  readonly credentials: HeldCredentials | undefined;
  /** Whom it accepts envelopes from (limits/principals.ts); undefined where the connection does not know. */
  readonly acceptFrom?: string | undefined;
}

/** Enters routes of one pod again that Redis may have lost. Source: docs/redis.md#route-restoring. */
export class RouteRestorer {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string;
  readonly #offlineAfterMs: number;
  readonly #limits: AgentLimits;
  readonly #epochs: KnownEpochs;

  constructor(
    options: Partial<AgentLimits> & {
      readonly link: RedisCalls;
      readonly window: ProcessWindow;
      readonly pod: string;
      readonly offlineAfterMs: number;
      /** Those that the pod knows. */
      readonly epochs?: KnownEpochs;
    },
  ) {
    this.#link = options.link;
    this.#window = options.window;
    this.#pod = options.pod;
    this.#offlineAfterMs = options.offlineAfterMs;
    this.#limits = limitsOfPartition(options, options.window.partitions);
    this.#epochs = options.epochs ?? new KnownEpochs(options.window.partitions);
  }

  get partitions(): number {
    return this.#window.partitions;
  }

  /** What one call of `restore` takes each. */
  slices<T extends { readonly agent: string }>(items: readonly T[]): (readonly [number, readonly T[]])[] {
    return inSlices(items, this.#window.partitions);
  }

  /**
   * Enters the routes where no connection has the agent, or one with an older epoch, which is told, and has the credentials
   * of those who have their agents known. Nothing is done in another window than the one adopted last: a listener of its
   * `onChange` may call this.
   * @param routes of one slice.
   * @returns of each route the epoch of the newer owner that has the agent, or null.
   * @throws ServiceError `unavailable`.
   */
  async restore(p: number, routes: readonly HeldRoute[]): Promise<(number | null)[]> {
    const { id, keys } = this.#window.current;
    const { presence, online, route, clock, acceptFrom } = keys.partition(p);
    const record = partitionKeys.window(p);
    const names = [record, presence, online, route, clock, acceptFrom];
    const numberOf = keyNumbers(names);
    const details = routes.flatMap((held) => {
      const { agent, connection, epoch, heardAt, isCongested } = held;
      const mark = isCongested ? CONGESTED : "";
      const limit = agentLimitArgs(held, keys.partition(p), this.#limits, numberOf);
      const credentials = credentialArgs(held, keys.partition(p), numberOf);
      return [
        agent,
        connection,
        epoch,
        this.#link.unixTimeOf(record, heardAt),
        mark,
        ...limit,
        ...credentials,
        held.acceptFrom ?? NOT_KNOWN,
      ];
    });
    const args = [
      id,
      partitionKeys.podChannelPrefix(p),
      this.#offlineAfterMs,
      PRESENCE_LIMITS.forgetAfterMs,
      this.#link.memoryOf(record).isShort ? 1 : 0,
      this.#pod,
      this.#epochs.highestIn(p),
      ...details,
    ];
    const [outcome, ...epochs] = (await this.#link.runByDeadline("restore_routes", names, args)) as string[];
    if (outcome === "window") throw unavailable();
    return epochs.map((text, n) => {
      if (text === "") return null;
      const epoch = Number(text);
      this.#epochs.note((routes[n] as HeldRoute).agent, epoch);
      return epoch;
    });
  }
}

/** Three arguments of the script: the key of the agent's credentials, when the last of them ends, and their lines. */
function credentialArgs(
  { agent, credentials }: HeldRoute,
  keys: PartitionKeys,
  numberOf: (key: string) => number,
): (string | number)[] {
  if (credentials === undefined) return ["", "", ""];
  const key = numberOf(keys.credential(agent));
  return [key, credentials.expiresAt, formatCredentials(credentials.records)];
}
