import { isUnavailable } from "./unavailable.ts";

/** What the partitions told that are there, in their order, and which are not. */
export interface Reached<T> {
  readonly found: readonly T[];
  readonly missing: readonly number[];
}

/**
 * Reads of all partitions at once, from those that can be reached.
 * @throws ServiceError `unavailable` when none can; whatever else a read fails with.
 */
export async function reachedOf<T>(reads: readonly Promise<T>[]): Promise<Reached<T>> {
  const ends = await Promise.allSettled(reads);
  const found = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const failures = ends.flatMap((end, p) => (end.status === "rejected" ? [{ p, reason: end.reason as unknown }] : []));
  const fatal = failures.find(({ reason }) => found.length === 0 || !isUnavailable(reason));
  if (fatal !== undefined) throw fatal.reason;
  return { found, missing: failures.map(({ p }) => p) };
}
