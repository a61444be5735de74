import type { Delivery } from "../types.ts";

/** Deliveries that one call removes from the queue. */
export interface Batch {
  readonly deliveries: readonly Delivery[];
  /** How many still wait. */
  readonly waiting: number;
  /** How many were dropped since the previous batch. */
  readonly dropped: number;
  /** Returns all of it to the queue, in the order in which it came. */
  putBack(): void;
}

interface Entry {
  /** In the order in which they came. */
  readonly number: number;
  readonly delivery: Delivery;
}

/** Deliveries that wait for a call, each for one. At most `max` wait, then the oldest is dropped. */
export class MessageQueue {
  readonly #max: number;
  /** By number. */
  #entries: readonly Entry[] = [];
  readonly #readers = new Set<() => void>();
  #came = 0;
  #dropped = 0;
  #hasEnded = false;

  constructor(max: number) {
    this.#max = max;
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

  add(delivery: Delivery): void {
    this.#came += 1;
    this.#keep([{ number: this.#came, delivery }]);
  }

  /** A delivery was dropped, here or in the connector's inbox. */
  countDropped(): void {
    this.#dropped += 1;
  }

  /** No delivery follows; those that wait can still be taken. */
  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /**
   * Resolves with what waits, else with the next delivery; with an empty batch after `timeoutMs`, or after the end. When the
   * signal aborts, rejects with its reason and removes nothing.
   */
  async take(max: number, timeoutMs: number, signal: AbortSignal): Promise<Batch> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    const cancelled = AbortSignal.any([signal, deadline.signal]);
    while (this.size === 0 && !this.#hasEnded && !cancelled.aborted) await this.#change(cancelled);
    clearTimeout(timer);
    signal.throwIfAborted();
    return this.#batch(max);
  }

  #batch(max: number): Batch {
    const taken = this.#entries.slice(0, max);
    const dropped = this.#dropped;
    this.#entries = this.#entries.slice(max);
    this.#dropped = 0;
    const putBack = () => {
      this.#dropped += dropped;
      this.#keep(taken);
    };
    return { deliveries: taken.map(({ delivery }) => delivery), waiting: this.size, dropped, putBack };
  }

  #keep(added: readonly Entry[]): void {
    const entries = [...this.#entries, ...added].sort((one, other) => one.number - other.number);
    const excess = Math.max(0, entries.length - this.#max);
    this.#entries = entries.slice(excess);
    this.#dropped += excess;
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
