const MINUTE_MS = 60_000;

/** So many in each minute. */
export class Allowance {
  readonly #perMinute: number;
  /** By performance.now(). */
  #since = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** False when there is none left. */
  take(): boolean {
    const now = performance.now();
    if (now - this.#since >= MINUTE_MS) [this.#since, this.#taken] = [now, 0];
    this.#taken += 1;
    return this.#taken <= this.#perMinute;
  }
}
