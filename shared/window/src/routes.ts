import type { ProcessWindow } from "./process-window.ts";
import { formatRouteOwner } from "./records/route.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";
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
 * that a close during an outage does not leave an agent online after it; connection and epoch are compared, so a late release never removes a newer owner's.
 */
export class RouteReleaser {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #pod: string;
  readonly #unreleased = new Map<string, Route>();
  #running: Promise<void> | undefined;

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow; readonly pod: string }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#pod = options.pod;
    options.link.onUsable(async () => void this.flush());
  }

  release(routes: readonly Route[]): void {
    for (const route of routes) this.#unreleased.set(this.#nameOf(route), route);
    void this.flush();
  }

  /** Resolves when everything was sent, or Redis did not answer. */
  flush(): Promise<void> {
    if (this.#unreleased.size > 0) this.#running ??= this.#send();
    return this.#running ?? Promise.resolve();
  }

  async #send(): Promise<void> {
    while (this.#unreleased.size > 0) {
      const slices = inSlices([...this.#unreleased.values()], this.#window.partitions);
      const sent = await Promise.allSettled(slices.map(([p, slice]) => this.#sendSlice(p, slice)));
      if (sent.some(({ status }) => status === "rejected")) break;
    }
    this.#running = undefined;
  }

  async #sendSlice(p: number, routes: readonly Route[]): Promise<void> {
    const args = routes.flatMap((route) => [route.agent, this.#owner(route)]);
    const { online, route } = this.#window.current.keys.partition(p);
    await this.#link.run("release", [online, route], args);
    for (const route of routes) this.#unreleased.delete(this.#nameOf(route));
  }

  #nameOf(route: Route): string {
    return `${route.agent} ${this.#owner(route)}`;
  }

  #owner({ connection, epoch }: Route): string {
    return formatRouteOwner({ pod: this.#pod, connection, epoch });
  }
}
