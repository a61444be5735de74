import { STAGE_OF_ACTION, STAGES, type StageName } from "relay-protocol/contract/reports/traffic.ts";
import type { SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { WholeKeys } from "../redis/window-keys.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/**
 * One visitor's journey without the visitor's id, which stays in Redis. Times are Unix ms by the clock of Redis.
 * Source: docs/reports.md#journeys.
 */
export interface Journey {
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** Number of all actions, including actions that are no longer kept. */
  readonly count: number;
  /** Stages that any action reached. A completed stage stays, however many pages the visitor reads afterwards. */
  readonly stages: ReadonlySet<StageName>;
  /** The last actions, oldest first. */
  readonly actions: readonly Action[];
}

interface Action {
  /** Operation id of the surface. */
  readonly name: string;
  readonly at: number;
}

/** A stage as a bit of `stages` in the record. */
function stageBit(stage: StageName): number {
  return 1 << STAGES.indexOf(stage);
}

/** Parses `first_seen last_seen count stages name@at name@at …`. Source: shared/window/src/lua/lib/journey.lua. */
export function parseJourney(record: string): Journey {
  const [firstSeen, lastSeen, count, stages, ...actions] = record.split(" ");
  return {
    firstSeen: Number(firstSeen),
    lastSeen: Number(lastSeen),
    count: Number(count),
    stages: new Set(STAGES.filter((stage) => (Number(stages) & stageBit(stage)) !== 0)),
    // Processes write at different times, so an action can arrive up to a flush after a later one.
    actions: actions.map(parseAction).sort((a, b) => a.at - b.at),
  };
}

function parseAction(text: string): Action {
  const end = text.indexOf("@");
  return { name: text.slice(0, end), at: Number(text.slice(end + 1)) };
}

/**
 * Actions of visitors since the last write. A journey is the ordered actions of one anonymous visitor. Here and in
 * Redis only the visitors seen last, and the last actions of each, are kept. Source: docs/reports.md#journeys.
 */
export class GatheredJourneys {
  /** The visitor seen longest ago comes first. */
  readonly #visits = new Map<string, Visit>();

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

  /**
   * Arguments of `flush_counters`. They hold ages, not times: the clock of Redis dates the actions of all processes.
   */
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
  /** One bit for each reached stage. */
  stages: number;
  /** `at` is by the clock of `add`. */
  readonly actions: { readonly name: SurfaceId; readonly at: number }[];
}

/** Journeys by version, as this process holds them. */
type Versions = ReadonlyMap<string, Journey>;

const NONE: Versions = new Map();

/**
 * The window's journeys as one process read them. 200 journeys with 50 actions have some 280 KB, and few change between
 * two reads. Only the changed ones leave Redis. A version names one written state of one journey, and never another.
 * Each read fetches the list of versions, so it shows nothing that Redis no longer has. Source: docs/redis.md#journeys.
 */
export class JourneysCopy {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  #keys: WholeKeys | undefined;
  #held = NONE;

  constructor(link: RedisCalls, window: ProcessWindow) {
    this.#link = link;
    this.#window = window;
  }

  /**
   * The visitor seen last comes first. A journey stays the same object until an action is added.
   * @throws ServiceError `unavailable`.
   */
  async read(): Promise<readonly Journey[]> {
    const keys = (await this.#window.known()).keys.whole;
    const held = this.#keys === keys ? this.#held : NONE;
    // A promotion can bring back versions older than the held ones. Then all are read again.
    const journeys = (await this.#readAbove(held, keys)) ?? (await this.#readAbove(NONE, keys)) ?? NONE;
    this.#keys = keys;
    this.#held = journeys;
    return [...journeys.values()].sort((a, b) => b.lastSeen - a.lastSeen);
  }

  /** Null if a version is neither held nor above the highest held one. */
  async #readAbove(held: Versions, { journeys, journeyVersions }: WholeKeys): Promise<Versions | null> {
    const highest = Math.max(0, ...[...held.keys()].map(Number));
    const [all = "", ...changed] = (await this.#link.run(
      "read_journeys",
      [journeys, journeyVersions],
      [highest],
    )) as string[];
    const known = new Map(held);
    for (let n = 0; n < changed.length; n += 2) known.set(changed[n] as string, parseJourney(changed[n + 1] as string));
    const versions = all === "" ? [] : all.split(" ");
    if (!versions.every((version) => known.has(version))) return null;
    return new Map(versions.map((version) => [version, known.get(version) as Journey]));
  }
}

function firstOf(visits: ReadonlyMap<string, Visit>): string {
  return visits.keys().next().value as string;
}
