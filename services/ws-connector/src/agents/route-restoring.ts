import type { HeldRoute } from "relay-window/presence/held-routes.ts";
import { everyPartition } from "relay-window/redis/partitions.ts";
import type { Connection } from "../connection/connection.ts";
import type { PodRedis } from "../pod-redis.ts";
import type { Authority } from "./authority.ts";
import { CongestionFlag } from "./congestion.ts";
import type { OwnedAgent } from "./ownership.ts";
import type { Registrar } from "./registrar.ts";

export interface RouteRestoringOptions {
  readonly redis: Pick<PodRedis, "restorer" | "releaser">;
  readonly connections: Iterable<Connection>;
  readonly registrar: Registrar;
  readonly authority: Authority;
}

interface Held {
  readonly connection: Connection;
  readonly agent: string;
}

/**
 * Restores routes that Redis may have lost, before the next heartbeats of their agents. In a new process window this
 * concerns all partitions. After a partition's publishes reached no subscriber, it concerns that partition once its
 * channel is back. One call runs at a time, with the state at sending. The next `flush` restores again the routes that
 * Redis did not take. Source: docs/redis.md#route-restoring.
 */
export class RouteRestoring {
  readonly #options: RouteRestoringOptions;
  /** Partitions whose routes the pod must restore. */
  #due = new Set<number>();
  #running: Promise<void> | undefined;

  constructor(options: RouteRestoringOptions) {
    this.#options = options;
  }

  /** Restores the routes of all partitions. Resolves when all are restored, or Redis did not answer. */
  all(): Promise<void> {
    return this.ofPartitions(everyPartition(this.#options.redis.restorer.partitions));
  }

  ofPartitions(partitions: readonly number[]): Promise<void> {
    for (const partition of partitions) this.#due.add(partition);
    return this.flush();
  }

  /** Restores the partitions that are due. */
  flush(): Promise<void> {
    if (this.#due.size > 0) this.#running ??= this.#run();
    return this.#running ?? Promise.resolve();
  }

  async #run(): Promise<void> {
    const failed = new Set<number>();
    while (this.#due.size > 0) {
      const due = this.#due;
      this.#due = new Set();
      for (const partition of await this.#restoreDue(due)) failed.add(partition);
    }
    this.#due = failed;
    this.#running = undefined;
  }

  /** @returns the partitions that did not take all routes. */
  async #restoreDue(due: ReadonlySet<number>): Promise<ReadonlySet<number>> {
    const held = [...this.#options.connections].flatMap((connection) =>
      connection.agents.owned().map((agent) => ({ connection, agent })),
    );
    const failed = new Set<number>();
    for (const [partition, slice] of this.#options.redis.restorer.slices(held)) {
      if (!due.has(partition) || failed.has(partition)) continue;
      await this.#restore(partition, slice).catch(() => failed.add(partition));
    }
    return failed;
  }

  async #restore(partition: number, slice: readonly Held[]): Promise<void> {
    const { registrar, redis } = this.#options;
    const restored = slice.flatMap((held) => {
      const flag = new CongestionFlag(held.connection);
      const route = this.#routeOf(held, flag);
      return route === undefined ? [] : { held, route, flag };
    });
    if (restored.length === 0) return;
    try {
      const epochs = await redis.restorer.restore(
        partition,
        restored.map(({ route }) => route),
      );
      for (const [n, { held }] of restored.entries()) {
        const newer = epochs[n] ?? null;
        if (newer !== null) void registrar.supersedeInOrder(held.connection, held.agent, newer);
      }
    } finally {
      for (const { flag } of restored) flag.settled();
      // The pod may have released the agent before Redis carried this out, even if there was no answer.
      const gone = restored.filter(({ held }) => this.#ownedOf(held) === undefined);
      if (gone.length > 0) redis.releaser.release(gone.map(({ route }) => route));
    }
  }

  /** Undefined if the connection has lost the agent, or deliveries do not reach it. */
  #routeOf(held: Held, flag: CongestionFlag): HeldRoute | undefined {
    const { registrar, authority } = this.#options;
    const { connection, agent } = held;
    const owned = registrar.canTake(connection, agent) ? this.#ownedOf(held) : undefined;
    if (owned === undefined) return undefined;
    const { epoch, heardAt, key, acceptFrom } = owned;
    const { id } = connection;
    const isCongested = flag.carry();
    const credentials = authority.heldCredentials(connection, agent);
    const principal = authority.principalOfAgent(connection, key, agent);
    return { agent, connection: id, epoch, heardAt, isCongested, credentials, acceptFrom, ...principal };
  }

  /** Undefined if the connection no longer owns the agent, may not act for it, is draining, or is closing. */
  #ownedOf({ connection, agent }: Held): OwnedAgent | undefined {
    const owned = connection.isClosing || connection.isDraining ? null : connection.agents.ownedAgent(agent);
    const mayAct = owned !== null && this.#options.authority.mayAct(connection, owned.key, agent);
    return mayAct ? owned : undefined;
  }
}
