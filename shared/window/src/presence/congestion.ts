import { keyNumbers } from "../redis/key-numbers.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { CONGESTED, formatRouteOwner } from "./route.ts";
import { inSlices } from "./route-slices.ts";
import type { Route } from "./routes.ts";

/** A route, and whether its connection is congested. */
export interface RouteMark extends Route {
  readonly isCongested: boolean;
}

/**
 * Marks routes of one pod whose connections are congested, and clears the marks of those that no longer are, whose agents are told at
 * their next heartbeats what waits. Connection and epoch are compared, so a late one never touches a newer owner's route. Source: docs/protocol.md#slow-readers.
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

  /** Sent at once, so that registers and heartbeats that are accepted later find them. @throws ServiceError `unavailable`. */
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
      numberOf(ofPartition.asked(agent)),
      numberOf(ofPartition.decided(agent)),
    ]);
    await this.#link.run("mark_congestion", keys, args);
  }
}
