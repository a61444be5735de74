import type { Violation } from "../../support/violations.ts";

/** How a cluster came through a fault: one line of the table. Counts are those of `tally`. */
export interface Outcome {
  readonly fault: string;
  /** How often it was injected. */
  readonly times: number;
  readonly sent: number;
  readonly acked: number;
  /** Acked as deliverable in realtime. */
  readonly promised: number;
  readonly delivered: number;
  readonly refused: number;
  readonly violations: readonly Violation[];
  /** Ms from the end of each injection until all was as before; none of those that nobody felt. */
  readonly recoveries: readonly number[];
}
