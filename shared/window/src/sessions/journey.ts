import { STAGES, type StageName } from "relay-protocol/contract/reports/traffic.ts";

/**
 * One visitor's journey, without the visitor: ids stay in Redis. Times are Unix ms by the clock of Redis.
 * Source: docs/reports.md#journeys.
 */
export interface Journey {
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** All actions, those included that are no longer kept. */
  readonly count: number;
  /** The stages that any of them reached: what a visitor has completed stays so, however much it reads afterwards. */
  readonly stages: ReadonlySet<StageName>;
  /** The last ones, oldest first. */
  readonly actions: readonly Action[];
}

export interface Action {
  /** Operation id of the surface. */
  readonly name: string;
  readonly at: number;
}

/** A stage as a bit of the record's `stages`. */
export function stageBit(stage: StageName): number {
  return 1 << STAGES.indexOf(stage);
}

/** Reads `first_seen last_seen count stages name@at name@at …`. Source: shared/window/src/lua/lib/journey.lua. */
export function parseJourney(record: string): Journey {
  const [firstSeen, lastSeen, count, stages, ...actions] = record.split(" ");
  return {
    firstSeen: Number(firstSeen),
    lastSeen: Number(lastSeen),
    count: Number(count),
    stages: new Set(STAGES.filter((stage) => (Number(stages) & stageBit(stage)) !== 0)),
    // Each process writes in its own time: an action can come in up to a flush after a later one.
    actions: actions.map(parseAction).sort((a, b) => a.at - b.at),
  };
}

function parseAction(text: string): Action {
  const end = text.indexOf("@");
  return { name: text.slice(0, end), at: Number(text.slice(end + 1)) };
}
