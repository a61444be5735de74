/** How far the clock of the machine may go from where it was last seen until it is asked again: more is a step, or a suspended machine. */
const STEP_MS = 5;

/** Monotonic times as Unix ms, in their order while nobody sets the clock. */
export class WallClock {
  #offset = Date.now() - performance.now();

  /** @param monotonicMs of `performance.now()`. @returns Unix ms, with a fraction. */
  at(monotonicMs: number): number {
    const offset = Date.now() - performance.now();
    if (Math.abs(offset - this.#offset) > STEP_MS) this.#offset = offset;
    return this.#offset + monotonicMs;
  }
}
