/** Of more keys in one window those that came first give way: who sends as so many is bound by no limit of one key. */
const MOST_KEYS = 10_000;

/** Requests by key that this process alone counts, in windows that all keys share. Nothing is kept longer than a window lasts. */
export class OwnCounts {
  readonly #windowMs: number;
  readonly #used = new Map<string, number>();
  /** Monotonic ms. */
  #endsAt = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** How many keys are counted. */
  get size(): number {
    return this.#used.size;
  }

  /** Counts one request. */
  use(key: string): { readonly used: number; readonly resetMs: number } {
    if (this.#used.size === 0) this.#beginWindow();
    const used = (this.#used.get(key) ?? 0) + 1;
    const [first] = this.#used.keys();
    if (used === 1 && this.#used.size === MOST_KEYS) this.#used.delete(first as string);
    this.#used.set(key, used);
    return { used, resetMs: Math.max(1, Math.ceil(this.#endsAt - performance.now())) };
  }

  #beginWindow(): void {
    this.#endsAt = performance.now() + this.#windowMs;
    setTimeout(() => this.#used.clear(), this.#windowMs).unref();
  }
}
