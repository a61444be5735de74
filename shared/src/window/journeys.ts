import { WINDOW_LIMITS } from "../contract/limits.ts";
import type { SurfaceId } from "../contract/surfaces.ts";

/**
 * Journeys: what one anonymous visitor did, in order. Bounded everywhere, in the process and in Redis: the visitors seen
 * last, and the last actions of each. Who the visitor is stays in Redis; a journey that is read carries no id.
 */

/** One visitor's journey. Times are epoch ms by the clock of Redis. */
export interface Journey {
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** All actions, those included that are no longer kept. */
  readonly count: number;
  /** The last ones, oldest first. */
  readonly actions: readonly Action[];
}

export interface Action {
  /** Operation id of the surface. */
  readonly name: string;
  readonly at: number;
}

/** What visitors did since the last write, on its way to Redis. */
export class GatheredJourneys {
  /** The visitor seen longest ago stands first. */
  readonly #visits = new Map<string, Visit>();

  get size(): number {
    return this.#visits.size;
  }

  /** @param at ms by a clock that only this process knows and that never steps back. */
  add(visitor: string, name: SurfaceId, at: number): void {
    const visit = this.#visits.get(visitor) ?? { count: 0, actions: [] };
    visit.count += 1;
    visit.actions.push({ name, at });
    if (visit.actions.length > WINDOW_LIMITS.actionsPerJourney) visit.actions.shift();
    this.#visits.delete(visitor);
    this.#visits.set(visitor, visit);
    if (this.#visits.size > WINDOW_LIMITS.journeys) this.#visits.delete(firstOf(this.#visits));
  }

  /** Arguments of flush_counters.lua. Ages, not times: the clock of Redis dates them all, whichever process saw them. */
  args(now: number): (string | number)[] {
    return [...this.#visits].flatMap(([visitor, { count, actions }]) => [
      visitor,
      count,
      actions.length,
      ...actions.flatMap(({ name, at }) => [name, Math.round(now - at)]),
    ]);
  }
}

interface Visit {
  count: number;
  readonly actions: Action[];
}

/** Reads a journey as Redis keeps it: first seen, last seen, count, then each action as name@time. Pure. */
export function journeyOf(text: string): Journey {
  const [firstSeen, lastSeen, count, ...actions] = text.split(" ");
  return {
    firstSeen: Number(firstSeen),
    lastSeen: Number(lastSeen),
    count: Number(count),
    // Each process writes in its own time: an action can come in up to a flush after a later one.
    actions: actions.map(actionOf).sort((a, b) => a.at - b.at),
  };
}

function actionOf(text: string): Action {
  const end = text.indexOf("@");
  return { name: text.slice(0, end), at: Number(text.slice(end + 1)) };
}

function firstOf(visits: ReadonlyMap<string, Visit>): string {
  return visits.keys().next().value as string;
}
