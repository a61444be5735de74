import { keepNewest } from "../keep-newest.ts";
import { oldestOfMost } from "../oldest-of-most.ts";
import type { Delivery } from "../types.ts";

/** What one call removes from the queue. */
interface Batch<T> {
  readonly items: readonly T[];
  /** How many still wait. */
  readonly waiting: number;
  /** How many were dropped since the previous batch. */
  readonly dropped: number;
  /** Returns all of it to the queue, in the order in which it came. */
  putBack(): void;
}

interface Entry<T> {
  /** In the order in which they came. */
  readonly number: number;
  readonly item: T;
}

/** What waits for a call, each for one. At most `max` wait, then the oldest of the sender with the most is dropped. */
export class MessageQueue<T> {
  readonly #max: number;
  readonly #senderOf: (item: T) => string;
  /** By number. */
  #entries: readonly Entry<T>[] = [];
  readonly #readers = new Set<() => void>();
  #came = 0;
  #dropped = 0;
  #hasEnded = false;

  constructor(max: number, senderOf: (item: T) => string) {
    this.#max = max;
    this.#senderOf = senderOf;
  }

  get size(): number {
    return this.#entries.length;
  }

  get dropped(): number {
    return this.#dropped;
  }

  get isAwaited(): boolean {
    return this.#readers.size > 0;
  }

  add(item: T): void {
    this.#came += 1;
    this.#keep([{ number: this.#came, item }]);
  }

  /** One was dropped, here or in the connector's inbox. */
  countDropped(): void {
    this.#dropped += 1;
  }

  /** More may follow, also after an end. */
  begin(): void {
    this.#hasEnded = false;
  }

  /** None follows; those that wait can still be taken. */
  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /**
   * Resolves with what waits, else with the next; with an empty batch after `timeoutMs`, or after the end. When the
   * signal aborts, rejects with its reason and removes nothing.
   */
  async take(max: number, timeoutMs: number, signal: AbortSignal): Promise<Batch<T>> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    const cancelled = AbortSignal.any([signal, deadline.signal]);
    while (this.size === 0 && !this.#hasEnded && !cancelled.aborted) await this.#change(cancelled);
    clearTimeout(timer);
    signal.throwIfAborted();
    return this.#batch(max);
  }

  #batch(max: number): Batch<T> {
    const taken = this.#entries.slice(0, max);
    const dropped = this.#dropped;
    this.#entries = this.#entries.slice(max);
    this.#dropped = 0;
    const putBack = () => {
      this.#dropped += dropped;
      this.#keep(taken);
    };
    return { items: taken.map(({ item }) => item), waiting: this.size, dropped, putBack };
  }

  #keep(added: readonly Entry<T>[]): void {
    const entries = [...this.#entries, ...added].sort((one, other) => one.number - other.number);
    while (entries.length > this.#max) {
      entries.splice(
        oldestOfMost(entries, ({ item }) => this.#senderOf(item)),
        1,
      );
      this.#dropped += 1;
    }
    this.#entries = entries;
    this.#wake();
  }

  /** Resolves with the next change, or when the signal is aborted. */
  async #change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#readers.add(wake);
    signal.addEventListener("abort", wake);
    await promise;
    signal.removeEventListener("abort", wake);
    this.#readers.delete(wake);
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
  }
}

const MAX_KEPT = 200;

/** The newest messages that the model has seen, so that it can reply to them. */
export class ReceivedMessages {
  /** In the order in which they were seen. */
  readonly #deliveries = new Map<string, Delivery>();

  readonly #replied = new WeakSet<Delivery>();

  /** One may be seen again, whose answer did not reach the client. */
  keep(delivery: Delivery): void {
    keepNewest(this.#deliveries, nameOf(delivery.from, delivery.envelope.id), delivery, MAX_KEPT);
  }

  /** @returns whether it was replied to before. */
  replied(delivery: Delivery): boolean {
    const isRepeat = this.#replied.has(delivery);
    this.#replied.add(delivery);
    return isRepeat;
  }

  /** Those with that id: of that agent, or of any. */
  find(envelopeId: string, from?: string): readonly Delivery[] {
    const all = [...this.#deliveries.values()].filter(({ envelope }) => envelope.id === envelopeId);
    return from === undefined ? all : all.filter((delivery) => delivery.from === from);
  }
}

/** An id is its sender's: another agent may use the same, to get the reply. */
function nameOf(from: string, envelopeId: string): string {
  return JSON.stringify([from, envelopeId]);
}
