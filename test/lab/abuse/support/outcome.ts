import type { Usage } from "../deployment.ts";
import type { Figures } from "../samples.ts";
import type { Launched } from "../target.ts";

/** What became of one attack: one line of the table. */
export interface Outcome extends Launched {
  readonly attack: string;
  /** Of the relay, before the attack, and when bystanders were measured after it. */
  readonly before: Usage;
  readonly end: Usage;
  readonly during: Figures;
  readonly after: Figures;
  /** Messages between bystanders that were acked as delivered in realtime and did not arrive. */
  readonly lost: number;
  /** What attacker and witness saw that must not be. */
  readonly faults: readonly string[];
  readonly notes: readonly string[];
}
