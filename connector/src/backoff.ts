import { BACKOFF } from "./limits.ts";

/**
 * Full jitter: a random wait up to a bound that doubles with each attempt, so that all who were cut off at once do not
 * come back at once. Milliseconds.
 * @param attempt 0 for the first.
 */
export function backoffMs(attempt: number, random = Math.random()): number {
  return random * Math.min(BACKOFF.capMs, BACKOFF.firstMs * 2 ** attempt);
}

/** A wait that the relay asked for, and up to half as much again. */
export function spreadMs(waitMs: number, random = Math.random()): number {
  return waitMs * (1 + random / 2);
}
