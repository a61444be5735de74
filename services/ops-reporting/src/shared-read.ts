/**
 * A read that is shared: callers that come while it is under way wait for it, and later ones get the same result until
 * `keptMs` after it was sent. Its age counts from then, since what was acknowledged later may be missing from it. A failure
 * is passed to the callers that wait for it and is not kept.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  readonly #keptMs: number;
  #last: { readonly sentAt: number; readonly result: Promise<T> } | undefined;

  constructor(read: () => Promise<T>, keptMs: number) {
    this.#read = read;
    this.#keptMs = keptMs;
  }

  get(): Promise<T> {
    const now = performance.now();
    if (this.#last !== undefined && now - this.#last.sentAt < this.#keptMs) return this.#last.result;
    const last = { sentAt: now, result: this.#read() };
    this.#last = last;
    last.result.catch(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return last.result;
  }

  /** The next `get` sends a read of its own. */
  forget(): void {
    this.#last = undefined;
  }
}

/** A shared read of each key, kept for the `most` keys that were first asked for last: who asks for ever new ones keeps no more. */
export class SharedReads<T> {
  readonly #read: (key: string) => Promise<T>;
  readonly #keptMs: number;
  readonly #most: number;
  readonly #reads = new Map<string, SharedRead<T>>();

  constructor(read: (key: string) => Promise<T>, options: { readonly keptMs: number; readonly most: number }) {
    this.#read = read;
    this.#keptMs = options.keptMs;
    this.#most = options.most;
  }

  get size(): number {
    return this.#reads.size;
  }

  get(key: string): Promise<T> {
    const read = this.#reads.get(key) ?? this.#add(key);
    return read.get();
  }

  forget(): void {
    this.#reads.clear();
  }

  #add(key: string): SharedRead<T> {
    const read = new SharedRead(() => this.#read(key), this.#keptMs);
    this.#reads.set(key, read);
    if (this.#reads.size > this.#most) this.#reads.delete(this.#reads.keys().next().value as string);
    return read;
  }
}
