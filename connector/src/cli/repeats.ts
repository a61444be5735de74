const SAID_AGAIN_AFTER_MS = 60_000;

/** What a relay can say as often as it likes is said once in a while, with how often it was left out. */
export class Repeats {
  readonly #said = new Map<string, { readonly at: number; leftOut: number }>();

  /**
   * @param kind one of few.
   * @param now monotonic ms.
   * @returns how often it was left out since it was last said; undefined when it is left out now.
   */
  next(kind: string, now = performance.now()): number | undefined {
    const last = this.#said.get(kind);
    if (last !== undefined && now - last.at < SAID_AGAIN_AFTER_MS) {
      last.leftOut += 1;
      return undefined;
    }
    this.#said.set(kind, { at: now, leftOut: 0 });
    return last?.leftOut ?? 0;
  }
}
