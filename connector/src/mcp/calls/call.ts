/** A request of a client, until the client has its answer, or wants none any more. */
export class Call {
  readonly #abandoned = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  #putBack: (() => void) | undefined;

  /** Aborted when nobody takes the answer: the client cancelled the call, or its connection ended. */
  get abandoned(): AbortSignal {
    return this.#abandoned.signal;
  }

  /** Resolves when the call was answered or cancelled. A connection that ends cancels nothing. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** The answer has what no other call gets. @param putBack runs, once, when the client does not get it either. */
  takes(putBack: () => void): void {
    this.#putBack = putBack;
    if (this.abandoned.aborted) this.abandon();
  }

  answered(): void {
    this.#over.resolve();
  }

  abandon(): void {
    this.#abandoned.abort();
    this.#putBack?.();
    this.#putBack = undefined;
  }

  cancel(): void {
    this.abandon();
    this.#over.resolve();
  }
}
