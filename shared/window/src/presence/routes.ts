import { keyNumbers, partitionKeys } from "../redis/keys.ts";
import { everyPartition, partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { CONGESTED, formatRouteOwner } from "./presence.ts";

const { routesBatch } = REDIS_LIMITS;

/** Groups items by the partition of their agents, and splits each group into slices of at most `routesBatch`. */
export function inSlices<T extends { readonly agent: string }>(
  items: readonly T[],
  partitions: number,
): (readonly [partition: number, slice: readonly T[]])[] {
  const byPartition = Map.groupBy(items, ({ agent }) => partitionOf(agent, partitions));
  return [...byPartition].flatMap(([p, ofPartition]) =>
    Array.from({ length: Math.ceil(ofPartition.length / routesBatch) }, (_, n) => {
      return [p, ofPartition.slice(n * routesBatch, (n + 1) * routesBatch)] as const;
    }),
  );
}

/** How often in ms a pod sends failed releases again. */
export const RELEASE_RETRY_MS = 1000;

/** The connection that has an agent, and the epoch of its takeover. */
export interface Route {
  readonly agent: string;
  readonly connection: string;
  /** Null if it is not known. Then any epoch of the connection matches. */
  readonly epoch: number | null;
}

/**
 * Releases routes of one pod. A failed release is kept, and sent again with each `flush` and each new connection. So a
 * close during an outage does not leave an agent online. Redis compares connection and epoch. So a late release removes
 * neither a newer owner's route nor a later register's of the same connection.
 */
export class RouteReleaser {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string;
  /** By partition, then by agent and connection. */
  readonly #unreleased: readonly Map<string, Route>[];
  /** By partition. */
  readonly #running = new Map<number, Promise<void>>();

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow; readonly pod: string }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#pod = options.pod;
    this.#unreleased = everyPartition(options.window.partitions).map(() => new Map());
    options.link.onUsable(async () => void this.flush());
  }

  release(routes: readonly Route[]): void {
    const { partitions } = this.#window;
    const touched = Map.groupBy(routes, ({ agent }) => partitionOf(agent, partitions));
    for (const [p, released] of touched) {
      for (const route of released) this.#add(this.#of(p), route);
      void this.#flushPartition(p);
    }
  }

  /** The release of an agent and connection that is pending, and may still take effect. */
  unreleased(agent: string, connection: string): Route | undefined {
    return this.#of(partitionOf(agent, this.#window.partitions)).get(nameOf({ agent, connection }));
  }

  /** Resolves when everything was sent, or Redis did not answer. */
  async flush(): Promise<void> {
    await Promise.all(this.#unreleased.map((_, p) => this.#flushPartition(p)));
  }

  #flushPartition(p: number): Promise<void> {
    if (this.#of(p).size > 0 && !this.#running.has(p)) this.#running.set(p, this.#send(p));
    return this.#running.get(p) ?? Promise.resolve();
  }

  /** Each partition has one run at a time, so a failing partition does not hold up the others. */
  async #send(p: number): Promise<void> {
    const unreleased = this.#of(p);
    while (unreleased.size > 0) {
      const slices = inSlices([...unreleased.values()], this.#window.partitions);
      const sent = await Promise.allSettled(slices.map(([, slice]) => this.#sendSlice(p, slice)));
      if (sent.some(({ status }) => status === "rejected")) break;
    }
    this.#running.delete(p);
  }

  async #sendSlice(p: number, routes: readonly Route[]): Promise<void> {
    const args = routes.flatMap((route) => [route.agent, this.#owner(route)]);
    const { online, route } = this.#window.current.keys.partition(p);
    await this.#link.run("release", [online, route], args);
    const unreleased = this.#of(p);
    for (const route of routes) if (unreleased.get(nameOf(route)) === route) unreleased.delete(nameOf(route));
  }

  /** If a connection gave up several epochs of one agent, one release covers all of them. */
  #add(unreleased: Map<string, Route>, route: Route): void {
    const before = unreleased.get(nameOf(route));
    const isOfSeveral = before !== undefined && before.epoch !== route.epoch;
    unreleased.set(nameOf(route), isOfSeveral ? { ...route, epoch: null } : route);
  }

  #of(p: number): Map<string, Route> {
    return this.#unreleased[p] as Map<string, Route>;
  }

  #owner({ connection, epoch }: Route): string {
    return formatRouteOwner({ pod: this.#pod, connection, epoch });
  }
}

function nameOf({ agent, connection }: Pick<Route, "agent" | "connection">): string {
  return `${agent} ${connection}`;
}

/**
 * Asks the pod that has an agent to close the agent's connection.
 * @returns false if no pod has the agent.
 * @throws ServiceError `unavailable`: nothing was done, or the outcome is unknown.
 */
export async function disconnect(link: RedisCalls, window: ProcessWindow, agent: string): Promise<boolean> {
  const p = partitionOf(agent, window.partitions);
  const [, heard] = await window.inWindow(async ({ id, keys }) => {
    const names = [partitionKeys.window(p), keys.partition(p).route];
    const reply = await link.runByDeadline("disconnect", names, [id, partitionKeys.podChannelPrefix(p), agent]);
    return reply[0] === "window" ? null : reply;
  });
  return heard !== 0;
}

/** A route, and whether its connection is congested. */
export interface RouteMark extends Route {
  readonly isCongested: boolean;
}

/**
 * Marks the routes of congested connections of one pod, and clears the marks of connections that caught up. The agents
 * of a cleared route learn what waits with their next heartbeats. Redis compares connection and epoch, so a late call
 * never changes a newer owner's route. Source: docs/protocol.md#slow-readers.
 */
export class CongestionMarks {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string;

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow; readonly pod: string }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#pod = options.pod;
  }

  /** Sends at once, so that later registers and heartbeats find the marks. @throws ServiceError `unavailable`. */
  async write(marks: readonly RouteMark[]): Promise<void> {
    await Promise.all(inSlices(marks, this.#window.partitions).map(([p, slice]) => this.#send(p, slice)));
  }

  async #send(p: number, marks: readonly RouteMark[]): Promise<void> {
    const ofPartition = this.#window.current.keys.partition(p);
    const keys = [ofPartition.route];
    const numberOf = keyNumbers(keys);
    const args = marks.flatMap(({ agent, connection, epoch, isCongested }) => [
      agent,
      formatRouteOwner({ pod: this.#pod, connection, epoch }),
      isCongested ? CONGESTED : "",
      numberOf(ofPartition.pending(agent)),
      numberOf(ofPartition.decided(agent)),
    ]);
    await this.#link.run("mark_congestion", keys, args);
  }
}
