import { ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";

/** What a soak puts on the relay, and what it holds it to. */

export interface Plan {
  readonly minutes: number;
  readonly agents: number;
  /** Tells of progress. */
  readonly say: (text: string) => void;
}

/** Envelopes and requests a second, over all agents. */
export const RATES = { messages: 250, sessionRequests: 4 } as const;
/** The same over HTTP. */
export const CALLS = {
  gatewayMessages: 4,
  gatewaySessionRequests: 1,
  sessionLookUps: 2,
  presenceLookUps: 4,
  feedback: 2,
  reports: 3,
} as const;

/** How long an agent stays on one connection, on average, before it leaves of its own will. */
export const STAY_MS = 400_000;
/** How long it is away. */
export const AWAY_MS = 2000;
/** Comebacks in which the new connection takes the agent over from the old one, rather than after its close. */
export const TAKEOVER_SHARE = 0.3;

export const ROLL_EVERY_MS = 45_000;
export const SAMPLE_EVERY_MS = 10_000;

/**
 * What the last third of the run may hold in relation to the second: the median of both. A pod's own traffic comes and
 * goes by a few percent with the agents that are on it; what grows by more is kept for good.
 */
export const LEVEL = 1.1;
/** Resident memory also holds what the allocator has not given back, which depends on the order of events. */
export const RESIDENT_LEVEL = 1.15;
/**
 * Bytes that docs/redis.md says a guard entry and a session take, and a tenth more: a hash table that has just doubled
 * has room for twice what is in it.
 */
export const GUARD_BYTES = 88;
export const SESSION_BYTES = 290;
/**
 * What a key with a time to live takes in Redis' own tables beyond what MEMORY USAGE counts: its entry among those that
 * expire, and a place in two tables that may just have doubled.
 */
export const EXPIRY_BYTES = 64;
/** A bucket goes when no `ts` of its span can pass on any pod: after the skew, the tolerance between pods and the span. */
export const GUARD_LIFE_MS =
  ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs + REDIS_LIMITS.guardBucketMs;
/** Of the planned rate: what a machine must get through for the run to have meant something. */
export const LEAST_RATE = 0.8;
/** Share of calls that may be answered 503: a machine that does other things, too, may keep a process waiting now and then. */
export const UNAVAILABLE_SHARE = 0.01;
