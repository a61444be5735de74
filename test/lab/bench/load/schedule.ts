/**
 * An open loop: what is due is due, whatever became of what went before. Times are ms from the start; the first message is
 * due at once, the others evenly after it.
 */

/** When a message is due, of which `n` are due before it. */
export function dueAt(n: number, perSecond: number): number {
  return (n * 1000) / perSecond;
}

/** How many messages are due by a time. */
export function dueBy(elapsedMs: number, perSecond: number): number {
  return elapsedMs < 0 ? 0 : Math.floor((elapsedMs * perSecond) / 1000) + 1;
}
