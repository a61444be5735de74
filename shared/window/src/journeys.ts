import { WINDOW_LIMITS } from "protocol/contract/limits.ts";
import { STAGE_OF_ACTION } from "protocol/contract/reports/session-journeys.ts";
import type { SurfaceId } from "protocol/contract/surfaces.ts";
import type { ProcessWindow } from "./process-window.ts";
import { type Journey, parseJourney, stageBit } from "./records/journey.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";

/**
 * What visitors did since the last write, on its way to Redis. A journey is what one anonymous visitor did, in order. It is
 * bounded here and in Redis: the visitors seen last, and the last actions of each. Source: docs/reports.md#journeys.
 */
export class GatheredJourneys {
  /** The visitor seen longest ago stands first. */
  readonly #visits = new Map<string, Visit>();

  get size(): number {
    return this.#visits.size;
  }

  /** @param at ms by a clock that only this process knows and that never steps back. */
  add(visitor: string, name: SurfaceId, at: number): void {
    const visit = this.#visits.get(visitor) ?? { count: 0, stages: 0, actions: [] };
    visit.count += 1;
    visit.stages |= stageBit(STAGE_OF_ACTION[name] ?? "discovery");
    visit.actions.push({ name, at });
    if (visit.actions.length > WINDOW_LIMITS.actionsPerJourney) visit.actions.shift();
    this.#visits.delete(visitor);
    this.#visits.set(visitor, visit);
    if (this.#visits.size > WINDOW_LIMITS.journeys) this.#visits.delete(firstOf(this.#visits));
  }

  /** Arguments of flush_counters.lua. Ages, not times: the clock of Redis dates them all, whichever process saw them. */
  args(now: number): (string | number)[] {
    return [...this.#visits].flatMap(([visitor, { count, stages, actions }]) => [
      visitor,
      count,
      stages,
      actions.length,
      ...actions.flatMap(({ name, at }) => [name, Math.round(now - at)]),
    ]);
  }
}

interface Visit {
  count: number;
  /** A bit for each stage that was reached. */
  stages: number;
  /** `at` is by the clock of `add`. */
  readonly actions: { readonly name: SurfaceId; readonly at: number }[];
}

/**
 * The journeys of the window, the visitor seen last first; at most 200 of 50 actions, some 280 KB.
 * @throws ServiceError `unavailable`.
 */
export async function readJourneys(link: RedisCalls, window: ProcessWindow): Promise<Journey[]> {
  const { keys } = await window.known();
  const records = (await link.run("read_journeys", [keys.whole.journeys])) as string[];
  return records.map(parseJourney).sort((a, b) => b.lastSeen - a.lastSeen);
}

function firstOf(visits: ReadonlyMap<string, Visit>): string {
  return visits.keys().next().value as string;
}
