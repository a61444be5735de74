import type { Connection } from "../connection/connection.ts";

/**
 * The mark that the call of a register, heartbeat or restore carries. On a cluster that call may be carried out after another one that was sent later: so
 * when it is answered, or over, what has become untrue of it is corrected.
 */
export class CarriedMark {
  readonly #connection: Pick<Connection, "isCongested" | "congestionChanged">;
  #carried: boolean | undefined;

  constructor(connection: Pick<Connection, "isCongested" | "congestionChanged">) {
    this.#connection = connection;
  }

  /** What is true as the call is made. */
  carry(): boolean {
    this.#carried = this.#connection.isCongested;
    return this.#carried;
  }

  /** The call will not be carried out any more. */
  settled(): void {
    if (this.#carried !== undefined && this.#carried !== this.#connection.isCongested)
      this.#connection.congestionChanged();
  }
}
