import type { CongestionMarks } from "relay-window/presence/routes.ts";
import type { Connection } from "../connection/connection.ts";

/**
 * The congestion that one call carries: of a register, a heartbeat or a restored route. A cluster may carry calls out in
 * another order. So a flag that has changed by the end of its call is sent again.
 */
export class CongestionFlag {
  readonly #connection: Pick<Connection, "isCongested" | "congestionChanged">;
  #carried: boolean | undefined;

  constructor(connection: Pick<Connection, "isCongested" | "congestionChanged">) {
    this.#connection = connection;
  }

  /** The flag for the call that is made now. */
  carry(): boolean {
    this.#carried = this.#connection.isCongested;
    return this.#carried;
  }

  /** The call is over: Redis will not carry it out any more. */
  settled(): void {
    if (this.#carried !== undefined && this.#carried !== this.#connection.isCongested)
      this.#connection.congestionChanged();
  }
}

/**
 * Has the routes of a connection say whether it is congested: those of all its agents, the ones whose register is under way
 * included. One call at a time, each with what is true when it is sent; what Redis did not take is sent again with each
 * `flush`. Registers, heartbeats and restored routes carry the same, as a `CongestionFlag`.
 */
export class CongestionNotices {
  readonly #marks: CongestionMarks;
  readonly #unsaid = new Set<Connection>();
  #running: Promise<void> | undefined;

  constructor(marks: CongestionMarks) {
    this.#marks = marks;
  }

  changed(connection: Connection): void {
    this.#unsaid.add(connection);
    void this.flush();
  }

  /** Resolves when everything was sent, or Redis did not answer. */
  flush(): Promise<void> {
    if (this.#unsaid.size > 0) this.#running ??= this.#send();
    return this.#running ?? Promise.resolve();
  }

  async #send(): Promise<void> {
    let isTaken = true;
    while (isTaken && this.#unsaid.size > 0) {
      const batch = [...this.#unsaid];
      this.#unsaid.clear();
      isTaken = await this.#write(batch);
      if (!isTaken) for (const connection of batch) this.#unsaid.add(connection);
    }
    this.#running = undefined;
  }

  async #write(connections: readonly Connection[]): Promise<boolean> {
    const marks = connections.flatMap(({ agents, isCongested }) =>
      agents.reachable().map((route) => ({ ...route, isCongested })),
    );
    try {
      await this.#marks.write(marks);
      return true;
    } catch {
      return false;
    }
  }
}
