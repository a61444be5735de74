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
  readonly #verified = new Memory();
  /** Apart, so that what a relay makes up cannot push out what others signed. */
  readonly #others = new Memory();

  /** @param maxAgeMs 0 or Infinity = any age. */
  constructor(clock: Clock, maxAgeMs: number) {
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs === 0 ? Number.POSITIVE_INFINITY : maxAgeMs;
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
    const name = nameOf(envelope);
    return this.#verified.has(name) || this.#others.has(name);
  }

  /** Only what was delivered: a forged envelope must not block the true one whose id it copied. */
  remember(envelope: Envelope, verified: Delivery["verified"]): void {
    const memory = verified === "agent" ? this.#verified : this.#others;
    // By this machine's clock alone, as if the relay set it back as far as it can: else it could make old what is forgotten.
    memory.add(nameOf(envelope), envelope.ts + this.#maxAgeMs + MAX_CLOCK_CORRECTION_MS);
  }
}

/** No agent id contains a space. */
function nameOf({ from, id }: Envelope): string {
  return `${from} ${id}`;
}

/** Names, each until its time, at most MAX_SEEN. */
class Memory {
  readonly #until = new Map<string, number>();

  has(name: string): boolean {
    return this.#until.has(name);
  }

  add(name: string, until: number): void {
    this.#until.set(name, until);
    for (const [oldest, end] of this.#until) {
      if (end >= Date.now() && this.#until.size <= MAX_SEEN) return;
      this.#until.delete(oldest);
    }
  }
}
