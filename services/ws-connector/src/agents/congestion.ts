import type { CongestionMarks } from "relay-window/presence/routes.ts";
import type { Connection } from "../connection/connection.ts";

/**
 * The congestion flag of one call: a register, a heartbeat or a restored route. A cluster may carry out calls in
 * another order. So the pod sends a flag again if it has changed by the end of its call.
 */
export class CongestionFlag {
  readonly #connection: Pick<Connection, "isCongested" | "congestionChanged">;
  #carried: boolean | undefined;

  constructor(connection: Pick<Connection, "isCongested" | "congestionChanged">) {
    this.#connection = connection;
  }

  /** The flag for the call that begins now. */
  carry(): boolean {
    this.#carried = this.#connection.isCongested;
    return this.#carried;
  }

  /** The call is over: Redis will not carry it out later. */
  settled(): void {
    if (this.#carried !== undefined && this.#carried !== this.#connection.isCongested)
      this.#connection.congestionChanged();
  }
}

/**
 * Marks the routes of congested connections in Redis. This includes routes whose register is under way. One call runs
 * at a time, and carries the state at sending. Each `flush` sends again the marks that Redis did not take. Registers,
 * heartbeats and restored routes carry the same flag (`CongestionFlag`).
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
