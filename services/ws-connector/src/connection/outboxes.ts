import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";

/** The bounds of an outbox, and why its connection is closed beyond one. Source: docs/security.md#limits. */
export type OutboxLimit = "outbox" | "outbox_total" | "outbox_stalled";

/** One of the outboxes, as far as all of them together are concerned. */
export interface CountedOutbox {
  /** That wait in it. */
  readonly bytes: number;
  /** @returns how many looks in a row, this one included, found that nothing drained. */
  idleCheck(): number;
  /** Has its connection closed. */
  giveUp(limit: OutboxLimit): void;
}

export interface OutboxSettings {
  /** Of one outbox. */
  readonly outboxBytes: number;
  /** Of all of them; 0 for no limit. */
  readonly outboxTotal: number;
}

/** How often the outboxes in which something waits are looked at. */
export const OUTBOX_CHECK_MS = 1000;

/** Looks in a row that may find that nothing drained. Counted rather than timed: a pod that stood still has not looked. */
const MAX_IDLE_CHECKS = CONNECTION_LIMITS.outboxStalledAfterMs / OUTBOX_CHECK_MS;

/**
 * The outboxes of a pod: their bounds, and what waits in all of them together. An outbox in which nothing waits, which is
 * nearly every one, costs nothing here. Source: docs/protocol.md#slow-readers.
 */
export class Outboxes {
  /** Above the first an outbox is congested, below the second no longer; above the third its connection is closed. */
  readonly congestedAbove: number;
  readonly clearedBelow: number;
  readonly fullAbove: number;
  readonly #totalBytes: number;
  readonly #waiting = new Set<CountedOutbox>();
  #bytes = 0;
  #congested = 0;

  constructor({ outboxBytes, outboxTotal }: OutboxSettings) {
    this.congestedAbove = outboxBytes * CONNECTION_LIMITS.outboxCongestedShare;
    this.clearedBelow = outboxBytes * CONNECTION_LIMITS.outboxClearedShare;
    this.fullAbove = outboxBytes * CONNECTION_LIMITS.outboxFullFactor;
    this.#totalBytes = outboxTotal === 0 ? Number.POSITIVE_INFINITY : outboxTotal;
  }

  /** Bytes that wait in all outboxes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that wait in the fullest. */
  get mostBytes(): number {
    return this.#fullest()?.bytes ?? 0;
  }

  /** How many are congested. */
  get congested(): number {
    return this.#congested;
  }

  /** What waits in an outbox has changed. */
  changed(outbox: CountedOutbox, before: number): void {
    this.#bytes += outbox.bytes - before;
    if (outbox.bytes === 0) this.#waiting.delete(outbox);
    else this.#waiting.add(outbox);
    // Who reads fast has little waiting: the fullest gives way, not who happens to be sent to.
    while (this.#bytes > this.#totalBytes) this.#fullest()?.giveUp("outbox_total");
  }

  /** An outbox has become congested, or no longer is. */
  congestionChanged(isCongested: boolean): void {
    this.#congested += isCongested ? 1 : -1;
  }

  /** Gives up those of which nothing drained for too long. Called once in OUTBOX_CHECK_MS. */
  check(): void {
    for (const outbox of this.#waiting) if (outbox.idleCheck() > MAX_IDLE_CHECKS) outbox.giveUp("outbox_stalled");
  }

  #fullest(): CountedOutbox | undefined {
    let fullest: CountedOutbox | undefined;
    for (const outbox of this.#waiting) if (outbox.bytes > (fullest?.bytes ?? 0)) fullest = outbox;
    return fullest;
  }
}
