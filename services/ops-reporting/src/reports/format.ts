/** A number of things: `1 agent`, `2 agents`. */
export function quantity(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** Epoch ms as ISO 8601. */
export function isoOrNull(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

/** A duration for people to read: `1 ms`, `59 s`, `12 min`, `2 h 59 min`. Rounded down. */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
