import { BACKOFF } from "./limits.ts";

/** Bounds of a wait: of the first, and of every one. */
export interface Backoff {
  readonly firstMs: number;
  readonly capMs: number;
}

/**
 * Full jitter: a random wait up to a bound that doubles with each attempt, so that connections lost together do
 * not reconnect together. Milliseconds.
 * @param attempt 0 for the first.
 */
export function backoffMs(attempt: number, random = Math.random(), { firstMs, capMs }: Backoff = BACKOFF): number {
  return random * Math.min(capMs, firstMs * 2 ** attempt);
}

/** The wait that was asked for, plus a random part of at most half as much, up to a bound. Milliseconds. */
export function jitteredMs(waitMs: number, capMs = Number.POSITIVE_INFINITY, random = Math.random()): number {
  return Math.min(waitMs * (1 + random / 2), capMs);
}

/** A wait that doubles with each attempt up to its bound, plus a random part of at most half as much. Milliseconds. */
export function growingMs(attempt: number, { firstMs, capMs }: Backoff): number {
  return jitteredMs(Math.min(capMs, firstMs * 2 ** attempt));
}
