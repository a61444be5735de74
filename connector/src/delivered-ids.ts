import { ForgottenSenders } from "./forgotten-senders.ts";
import { MAX_DELIVERED_IDS, MAX_SENDERS } from "./limits.ts";
import type { Envelope } from "./types.ts";

/**
 * The ids that were delivered, by sender. An id that was once added has its `tsOf`, or is `mayHaveHad`, for ever after, whatever else is
 * added: what is forgotten for want of room raises the time up to which nothing of its sender counts as new. No clock has a
 * say in it. It rests on one thing: an id is signed once, with one `ts`. Source: docs/security.md#at-the-recipient.
 */
export class DeliveredIds {
  /** Who was heard last stands last. */
  readonly #senders = new Map<string, SenderIds>();
  #size = 0;
  readonly #forgotten = new ForgottenSenders();

  /** The `ts` of the one with its id; undefined where there is none. */
  tsOf({ from, id }: Envelope): number | undefined {
    return this.#senders.get(from)?.tsOf(id);
  }

  /** True for one as old as what was forgotten. */
  mayHaveHad({ from, ts }: Envelope): boolean {
    return ts <= (this.#senders.get(from)?.forgottenTo ?? this.#forgotten.newestOf(from));
  }

  /** Adds one that it does not have. */
  add({ from, id, ts }: Envelope): void {
    const ids = this.#senders.get(from) ?? new SenderIds(this.#forgotten.newestOf(from));
    this.#senders.delete(from);
    this.#senders.set(from, ids);
    ids.add(id, ts);
    this.#size += 1;
    // Who sends most makes room: no sender can have another's ids forgotten.
    if (this.#size > MAX_DELIVERED_IDS) this.#size -= this.#fullest.forgetOlderHalf();
    if (this.#senders.size > MAX_SENDERS) this.#forgetLongestUnheard();
  }

  get #fullest(): SenderIds {
    return [...this.#senders.values()].reduce((fullest, ids) => (ids.size > fullest.size ? ids : fullest));
  }

  #forgetLongestUnheard(): void {
    const [from, ids] = this.#senders.entries().next().value as [string, SenderIds];
    this.#senders.delete(from);
    this.#forgotten.add(from, ids.newest);
    this.#size -= ids.size;
  }
}

/** Ids of one sender, with their `ts`. */
class SenderIds {
  readonly #times = new Map<string, number>();
  /** The newest `ts` of those that were forgotten. */
  forgottenTo: number;
  /** The newest `ts` of all. */
  newest: number = Number.NEGATIVE_INFINITY;

  /** @param forgottenTo what was forgotten of it before, if it was. */
  constructor(forgottenTo: number) {
    this.forgottenTo = forgottenTo;
  }

  get size(): number {
    return this.#times.size;
  }

  tsOf(id: string): number | undefined {
    return this.#times.get(id);
  }

  add(id: string, ts: number): void {
    this.#times.set(id, ts);
    this.newest = Math.max(this.newest, ts);
  }

  /** @returns how many are forgotten, one at least. */
  forgetOlderHalf(): number {
    const before = this.#times.size;
    const times = Float64Array.from(this.#times.values()).sort();
    this.forgottenTo = times[before >> 1] as number;
    for (const [id, ts] of this.#times) if (ts <= this.forgottenTo) this.#times.delete(id);
    return before - this.#times.size;
  }
}
