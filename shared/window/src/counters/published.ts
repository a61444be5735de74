/**
 * Published envelopes as acceptance counts them: one field `minute counter` for what came in within a minute of Unix time by one
 * way. What is older than the minutes that are kept stands in the counters. Source: shared/window/src/lua/accept/published.lua.
 */

/** The counter of all of them. */
const TOTAL = "published_envelopes";

/** @param published by field. @param counted what the counters hold. */
export function publishedOf(
  published: ReadonlyMap<string, number>,
  counted: ReadonlyMap<string, number>,
): { readonly counters: ReadonlyMap<string, number>; readonly minutes: ReadonlyMap<string, number> } {
  const [counters, minutes] = [new Map(counted), new Map<string, number>()];
  for (const [field, n] of published) {
    const [minute, counter] = field.split(" ") as [string, string];
    add(counters, TOTAL, n);
    add(counters, counter, n);
    add(minutes, minute, n);
  }
  return { counters, minutes };
}

function add(counts: Map<string, number>, name: string, n: number): void {
  counts.set(name, (counts.get(name) ?? 0) + n);
}
