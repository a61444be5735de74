/** Answers that are kept while no replica acknowledges any: of two minutes, longer than a replica is promoted that heard nothing. */
const MARKS_KEPT = 120;

/** What follows a primary. */
export interface Replicas {
  readonly count: number;
  /** How far the one that has least is behind. */
  readonly lagBytes: number;
}

/**
 * Until when all that a primary answered is known to have reached its replicas: they follow without being waited for, and one that
 * lags may be promoted. Source: docs/reports.md#complete.
 */
export class ReplicaProgress {
  /** How far the primary's stream was at most when it had answered what was asked before `at`; the oldest first. */
  readonly #marks: { readonly at: number; readonly offset: number }[] = [];
  #receivedUntil: number | undefined;
  #replicas: Replicas | undefined;

  /** Those that are online, as they were a second ago; undefined before Redis told of any or none. */
  get replicas(): Replicas | undefined {
    return this.#replicas;
  }

  /** Monotonic ms; undefined while no replica is known to have received anything. */
  get receivedUntil(): number | undefined {
    return this.#receivedUntil;
  }

  /** @param info INFO with its section replication. @param sentAt when it was asked for, monotonic ms. */
  told(info: string, sentAt: number): void {
    const offset = /^master_repl_offset:(\d+)/m.exec(info)?.[1];
    if (offset === undefined) return;
    this.#marks.push({ at: sentAt, offset: Number(offset) });
    if (this.#marks.length > MARKS_KEPT) this.#marks.shift();
    const acknowledged = acknowledgedIn(info);
    const online = acknowledged.filter((acked) => acked !== Number.NEGATIVE_INFINITY);
    this.#replicas = { count: online.length, lagBytes: Math.max(0, ...online.map((acked) => Number(offset) - acked)) };
    // Of no replica nobody knows what it has.
    const received = acknowledged.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...acknowledged);
    while (this.#marks[0] !== undefined && this.#marks[0].offset <= received)
      this.#receivedUntil = this.#marks.shift()?.at;
  }
}

/** The offset that each replica acknowledged; one that is not online has nothing yet. */
function acknowledgedIn(info: string): number[] {
  const replicas = [...info.matchAll(/^slave\d+:.*\bstate=(\w+),offset=(\d+)/gm)];
  return replicas.map(([, state, offset]) => (state === "online" ? Number(offset) : Number.NEGATIVE_INFINITY));
}
