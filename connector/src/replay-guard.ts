import type { Clock } from "./clock.ts";
import { DeliveredIds } from "./delivered-ids.ts";
import type { Envelope } from "./types.ts";

/**
 * Recognises what a relay may deliver again: old envelopes, and recent ones for a second time. Signatures stay valid for
 * ever. What this connector delivered is remembered, or as old as what it forgot; what is old by the clock may have been
 * delivered before it started.
 */
export class ReplayGuard {
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  readonly #isPinned: (agent: string) => boolean;
  readonly #ofPinned = new DeliveredIds();
  /** Apart: there may be any number of them, and no room that they take is missing to agents that are pinned. */
  readonly #ofOthers = new DeliveredIds();

  /**
   * @param maxAgeMs 0 or Infinity = any age.
   * @param isPinned always the same for an agent: a verdict may differ from one delivery of an envelope to the next.
   */
  constructor(clock: Clock, maxAgeMs: number, isPinned: (agent: string) => boolean) {
    this.#clock = clock;
    this.#isPinned = isPinned;
    this.#maxAgeMs = maxAgeMs === 0 ? Number.POSITIVE_INFINITY : maxAgeMs;
  }

  /** False when nobody can tell here what is old; then no signature says that an envelope is meant now. */
  get canJudge(): boolean {
    return this.#maxAgeMs === Number.POSITIVE_INFINITY || this.#clock.isTrusted;
  }

  /** Older than allowed, or as far in the future; or so old that it may have been delivered and forgotten. */
  isStale(envelope: Envelope): boolean {
    const isRecent = Math.abs(this.#clock.boundedNow() - envelope.ts) <= this.#maxAgeMs;
    return !isRecent || this.#delivered(envelope).mayHaveHad(envelope);
  }

  /** True for a second delivery of an id of the same sender. */
  isRepeat(envelope: Envelope): boolean {
    return this.#delivered(envelope).tsOf(envelope) !== undefined;
  }

  /** True for a repeat that is another envelope: its sender signed it at another time, and used an id again. */
  isReused(envelope: Envelope): boolean {
    const ts = this.#delivered(envelope).tsOf(envelope);
    return ts !== undefined && ts !== envelope.ts;
  }

  /** Only what was delivered: a forged envelope must not block the true one whose id it copied. */
  remember(envelope: Envelope): void {
    this.#delivered(envelope).add(envelope);
  }

  #delivered({ from }: Envelope): DeliveredIds {
    return this.#isPinned(from) ? this.#ofPinned : this.#ofOthers;
  }
}
