import type { Clock } from "./clock.ts";
import { MAX_CLOCK_CORRECTION_MS, MAX_SEEN } from "./limits.ts";
import type { Delivery, Envelope } from "./types.ts";

/**
 * Recognises what a relay may deliver again: old envelopes, and recent ones for a second time. Signatures stay valid for
 * ever. What is old is refused by its `ts`; what is recent is remembered until it is old.
 */
export class ReplayGuard {
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  readonly #verified: Memory;
  /** Apart, so that what a relay makes up cannot push out what others signed. */
  readonly #others: Memory;

  /** @param maxAgeMs 0 or Infinity = any age. */
  constructor(clock: Clock, maxAgeMs: number) {
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs === 0 ? Number.POSITIVE_INFINITY : maxAgeMs;
    // By this machine's clock alone, as if the relay set it back as far as it can: else it could make old what is forgotten.
    const lifeMs = this.#maxAgeMs + MAX_CLOCK_CORRECTION_MS;
    this.#verified = new Memory(lifeMs);
    this.#others = new Memory(lifeMs);
  }

  /** False when nobody can tell here what is old; then no signature says that an envelope is meant now. */
  get canJudge(): boolean {
    return this.#maxAgeMs === Number.POSITIVE_INFINITY || this.#clock.isTrusted;
  }

  /** Older than allowed, or as far in the future. */
  isStale({ ts }: Envelope): boolean {
    return !(Math.abs(this.#clock.boundedNow() - ts) <= this.#maxAgeMs);
  }

  /** True for a second delivery of an id of the same sender. */
  isRepeat(envelope: Envelope): boolean {
    return this.#tsOfDelivered(envelope) !== undefined;
  }

  /** True for a repeat that is another envelope: its sender signed it at another time, and used an id again. */
  isReused(envelope: Envelope): boolean {
    const ts = this.#tsOfDelivered(envelope);
    return ts !== undefined && ts !== envelope.ts;
  }

  /** Only what was delivered: a forged envelope must not block the true one whose id it copied. */
  remember(envelope: Envelope, verified: Delivery["verified"]): void {
    const memory = verified === "agent" ? this.#verified : this.#others;
    memory.add(nameOf(envelope), envelope.ts);
  }

  #tsOfDelivered(envelope: Envelope): number | undefined {
    const name = nameOf(envelope);
    return this.#verified.get(name) ?? this.#others.get(name);
  }
}

/** No agent id contains a space. */
function nameOf({ from, id }: Envelope): string {
  return `${from} ${id}`;
}

/** Names with their times, each for as long after it, at most MAX_SEEN. */
class Memory {
  readonly #lifeMs: number;
  readonly #times = new Map<string, number>();

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs;
  }

  get(name: string): number | undefined {
    return this.#times.get(name);
  }

  add(name: string, time: number): void {
    this.#times.set(name, time);
    for (const [oldest, at] of this.#times) {
      if (at + this.#lifeMs >= Date.now() && this.#times.size <= MAX_SEEN) return;
      this.#times.delete(oldest);
    }
  }
}
