/** Answers that are kept while no replica acknowledges any: of two minutes, longer than a replica is promoted that heard nothing. */
const MARKS_KEPT = 120;

/**
 * Until when all that a primary answered is known to have reached its replicas: they follow without being waited for, and one that
 * lags may be promoted. Source: docs/reports.md#complete.
 */
export class ReplicaProgress {
  /** How far the primary's stream was at most when it had answered what was asked before `at`; the oldest first. */
  readonly #marks: { readonly at: number; readonly offset: number }[] = [];
  #receivedUntil: number | undefined;

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
    const received = receivedIn(info);
    while (this.#marks[0] !== undefined && this.#marks[0].offset <= received)
      this.#receivedUntil = this.#marks.shift()?.at;
  }
}

/** The offset that every replica acknowledged; one that is not online has nothing yet, and of no replica nobody knows. */
function receivedIn(info: string): number {
  const replicas = [...info.matchAll(/^slave\d+:.*\bstate=(\w+),offset=(\d+)/gm)];
  if (replicas.length === 0) return Number.NEGATIVE_INFINITY;
  return Math.min(
    ...replicas.map(([, state, offset]) => (state === "online" ? Number(offset) : Number.NEGATIVE_INFINITY)),
  );
}
