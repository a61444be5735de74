import type { Order, Receipt } from "../orders.ts";

/** A way for what an agent says to reach the relay. */
export interface Route {
  /** How it went, for people: "over HTTP", … */
  readonly name: "gateway" | "listener" | "connection";
  /** Rejects with a Failure or a RelayError. */
  place(order: Order): Promise<Receipt>;
  close(): Promise<void>;
}
