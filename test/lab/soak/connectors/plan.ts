/** What a soak of the connectors does, and what it holds them and the relay to. */

export interface Plan {
  readonly minutes: number;
  /** Of each language. */
  readonly agents: number;
}

/** Each agent, to its partners in turn. */
export const SEND_EVERY_MS = 2000;
/** Longer than any comeback: no send is to end by it. */
export const SEND_TIMEOUT_S = 30;
/** What is killed, in turn; one round of these is a cycle. */
export const VICTIMS = ["websocket pod", "Redis", "TypeScript agents", "Python agents"] as const;
export type Victim = (typeof VICTIMS)[number];

const KILL_EVERY_MS = 30_000;
/** A shorter run still has five. */
const KILLS_OF_A_SHORT_RUN = 5;

/** From the kill until every agent has had the answer to what it sent after it; a send more than the way back may take. */
export const BACK_WITHIN_MS = 10_000 + SEND_EVERY_MS;
/** What is given up waiting for after a kill. */
export const GIVEN_UP_MS = 25_000;
/** Of the planned rate: what a machine must get through for the run to have meant something. */
export const LEAST_RATE = 0.8;
/** Of it, what is to be promised in realtime: of the rest, nothing can be lost. */
export const LEAST_PROMISED = 0.5;
/** Cycles that a line needs; the first, in which everything warms up, is none of them. */
export const LEAST_CYCLES = 3;

export function killEveryMs({ minutes }: Plan): number {
  return Math.min(KILL_EVERY_MS, (minutes * 60_000) / (KILLS_OF_A_SHORT_RUN + 1));
}

/** The last span of a run has no kill at its end. */
export function killsOf(plan: Plan): number {
  return Math.round((plan.minutes * 60_000) / killEveryMs(plan)) - 1;
}

/** Calls a second of those who only look. They do so from the first to the last. */
export const LOOKS = { presenceLookUps: 4, reports: 2 } as const;
