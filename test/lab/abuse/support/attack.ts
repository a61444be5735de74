import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { Deployment } from "../deployment.ts";
import type { Attacker } from "../target.ts";

/** What came of what a witness looked at. */
export interface Testimony {
  /** What must not be. */
  readonly faults: readonly string[];
  /** What else is worth telling. */
  readonly notes?: readonly string[];
}

/** Looks at what an attack does to one promise. It is called before the attack; what it returns, after it. */
export type Witness = (relay: Deployment) => Promise<() => Promise<Testimony>>;

/** One attack; a line of the table. */
export interface Attack {
  readonly name: string;
  /** What the relay does about it. */
  readonly stoppedBy: string;
  /** The limits that it comes to: one that it does not reach says nothing about it. */
  readonly reaches?: readonly LimitName[];
  /** Longer than other attacks, where a time is what stops it. */
  readonly forMs?: number;
  /** Without one the attack is the witness's alone. */
  readonly attacker?: Attacker;
  readonly witness?: Witness;
  /** Refusals that bystanders may meet while it goes on: what they asked for, and its code. */
  readonly allows?: readonly string[];
}
