import type { Tally, Violation } from "../../../support/ledger.ts";

/** How a fleet came through a fault: one line of the table. */
export interface Outcome extends Tally {
  readonly fault: string;
  /** How often it was injected. */
  readonly times: number;
  readonly violations: readonly Violation[];
  /** Envelopes that were taken for new once more, since Redis, or what was promoted, had forgotten them. */
  readonly forgotten: number;
  /** Ms from the first refusal of what concerns an agent until it was served again, for each agent and injection. */
  readonly unavailable: readonly number[];
  /** Ms from the end of each injection until all was as before; none of those that nobody felt. */
  readonly recoveries: readonly number[];
}
