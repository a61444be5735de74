import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import {
  type AgentLimits,
  type AgentPrincipal,
  agentLimitArgs,
  limitsOfPartition,
  NOT_KNOWN,
} from "../limits/principals.ts";
import { type CredentialRecord, formatCredentials } from "../public-keys/credential-records.ts";
import { keyNumbers, partitionKeys } from "../redis/keys.ts";
import { partitionOf } from "../redis/partitions.ts";
import { type RedisCalls, unavailable } from "../redis/redis-calls.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { CONGESTED } from "./presence.ts";
import { inSlices, type Route } from "./routes.ts";

/**
 * The highest epoch that a pod knows in each partition. Registers, heartbeats and restored routes carry it, and the
 * clock that gives epochs rises to it. So a promoted replica that lacks the newest epochs gives none of them twice.
 */
export class KnownEpochs {
  readonly #highest: number[];

  constructor(partitions: number) {
    this.#highest = Array(partitions).fill(0);
  }

  /** @param epoch the agent's epoch. */
  note(agent: string, epoch: number): void {
    const p = partitionOf(agent, this.#highest.length);
    if (epoch > this.highestIn(p)) this.#highest[p] = epoch;
  }

  /** 0 if none is known. */
  highestIn(partition: number): number {
    return this.#highest[partition] as number;
  }
}

/** The credentials that a connection holds for an agent. */
export interface HeldCredentials {
  /** The newest first. */
  readonly records: readonly CredentialRecord[];
  /** Unix ms: when the last credential ends. */
  readonly expiresAt: number;
}

/** A route that a connection holds, as its pod knows it. */
export interface HeldRoute extends Route, AgentPrincipal {
  readonly epoch: number;
  /** Monotonic ms: when a register or heartbeat of the agent was last accepted, or earlier. */
  readonly heardAt: number;
  readonly isCongested: boolean;
  /** Valid credentials. Undefined if the agent's key is listed. */
  readonly credentials: HeldCredentials | undefined;
  /** Whom the agent accepts envelopes from (limits/principals.ts). Undefined if the connection does not know. */
  readonly acceptFrom?: string | undefined;
}

/** Writes routes of one pod again that Redis may have lost. Source: docs/redis.md#route-restoring. */
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
      /** Epochs that the pod shares with its other writers. */
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

  /** Splits items into slices: one partition, and as many items as one call of `restore` takes. */
  slices<T extends { readonly agent: string }>(items: readonly T[]): (readonly [number, readonly T[]])[] {
    return inSlices(items, this.#window.partitions);
  }

  /**
   * Writes a route if no connection has the agent, or a connection with an older epoch has it. The older owner is told.
   * Also writes the agents' credentials. It writes only into the window that was adopted last, so a listener of that
   * window's `onChange` may call it.
   * @param routes of one slice.
   * @returns for each route the epoch of the newer owner that has the agent, or null.
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

/** Three script arguments: the key of the agent's credentials, the time when the last of them ends, and their lines. */
function credentialArgs(
  { agent, credentials }: HeldRoute,
  keys: PartitionKeys,
  numberOf: (key: string) => number,
): (string | number)[] {
  if (credentials === undefined) return ["", "", ""];
  const key = numberOf(keys.credential(agent));
  return [key, credentials.expiresAt, formatCredentials(credentials.records)];
}
