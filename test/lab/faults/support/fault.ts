import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import type { Fleet } from "../../fleet.ts";

/** What an injection has come to. Times are monotonic ms. */
export interface Injected {
  /** Those who could not exchange while the fault lasted; they are back when each of them sent and received again. */
  readonly agents: readonly ReturningAgent[];
  readonly endedAt: number;
  /** When the service was back, where that is not told by envelopes between agents. */
  readonly backAt?: number;
}

/** One fault, as it is injected again and again while agents send messages. */
export interface Fault<F extends Fleet = Fleet> {
  readonly name: string;
  /** How often it is injected in the long run. */
  readonly times: number;
  /** Lets the fault begin, bite and end. It throws when the fault did not bite. */
  readonly inject: (fleet: F) => Promise<Injected>;
  /** How soon all is as before, by promise. */
  readonly backWithinMs?: number;
  /** Close codes that connections may end with; by default every connection outlives the fault. */
  readonly closes?: readonly number[];
  /** Whoever it touches has no one to answer while it lasts. */
  readonly silences?: true;
  /** Takes too long for `npm test`. */
  readonly isLong?: true;
  /** What an envelope may be refused with, besides `unavailable`: a connection that was just superseded is not registered. */
  readonly refusal?: ErrorCode;
}

/** The fault is over, for these agents. */
export function over(agents: readonly ReturningAgent[]): Injected {
  return { agents, endedAt: performance.now() };
}
