import type { Delivery } from "../types.ts";

/** Deliveries that one call takes away. */
export interface Batch {
  readonly deliveries: readonly Delivery[];
  /** How many still wait. */
  readonly waiting: number;
  /** How many were lost to overflow since the batch before. */
  readonly dropped: number;
}

/** Deliveries until a call takes them, each once. At most `max` wait, then the oldest gives way. */
export class MessageQueue {
  readonly #max: number;
  readonly #deliveries: Delivery[] = [];
  readonly #readers = new Set<() => void>();
  #dropped = 0;
  #hasEnded = false;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#deliveries.length;
  }

  get dropped(): number {
    return this.#dropped;
  }

  get isAwaited(): boolean {
    return this.#readers.size > 0;
  }

  add(delivery: Delivery): void {
    this.#deliveries.push(delivery);
    if (this.#deliveries.length > this.#max) {
      this.#deliveries.shift();
      this.lose();
    }
    this.#wake();
  }

  /** A delivery was lost before it came here. */
  lose(): void {
    this.#dropped += 1;
  }

  /** No delivery will come any more; those that wait can still be taken. */
  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /**
   * What is there at once, else what comes first; an empty batch after `timeoutMs`, or after the end. Rejects with the
   * signal's reason, and takes nothing then: nobody would read it.
   */
  async take(max: number, timeoutMs: number, signal: AbortSignal): Promise<Batch> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), timeoutMs);
    const over = AbortSignal.any([signal, deadline.signal]);
    while (this.size === 0 && !this.#hasEnded && !over.aborted) await this.#change(over);
    clearTimeout(timer);
    signal.throwIfAborted();
    return this.#batch(max);
  }

  #batch(max: number): Batch {
    const deliveries = this.#deliveries.splice(0, max);
    const dropped = this.#dropped;
    this.#dropped = 0;
    return { deliveries, waiting: this.size, dropped };
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
