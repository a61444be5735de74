import { everyPartition, partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { formatRouteOwner } from "./route.ts";
import { inSlices } from "./route-slices.ts";

/** How often a pod sends again the releases that Redis did not take. */
export const RELEASE_RETRY_MS = 1000;

/** Which connection has an agent, and since which takeover. */
export interface Route {
  readonly agent: string;
  readonly connection: string;
  /** Null when it is not known: whatever the connection has of the agent is meant. */
  readonly epoch: number | null;
}

/**
 * Releases routes of one pod. What Redis did not take is kept, and sent again with each `flush` and each new connection, so
 * that a close during an outage does not leave an agent online after it; connection and epoch are compared, so a late release never removes
 * a newer owner's, nor what the same connection got by a register since.
 */
export class RouteReleaser {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string;
  /** By partition, and there by agent and connection. */
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

  /** What is to be released of an agent and a connection, and may be carried out yet. */
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

  /** One run at a time of each partition: one that Redis does not take holds up no other. */
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

  /** Of several epochs of one connection all are released: it has given up each of them. */
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
