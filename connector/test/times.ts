import { jest } from "@jest/globals";
import { LOOK_UP, MANIFEST } from "../src/limits.ts";

/** A wait that no test sits out. */
export const LONG_MS = 1_000_000;

/**
 * Waits of `ms` that begin from now on, until `jest.restoreAllMocks()`, are over when the test says so.
 * @returns ends those that have begun.
 */
export function holdWaits(ms = LONG_MS): () => void {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const held = new Map<unknown, () => void>();
  // What is left of a time that began a moment ago is a little less.
  const isHeld = (after = 0) => after > ms * 0.95 && after <= ms;
  const hold = (then: (...given: unknown[]) => void, after?: number, ...given: unknown[]) => {
    const timer = set(then, after, ...given);
    if (isHeld(after)) held.set(timer, then);
    return timer;
  };
  jest.spyOn(globalThis, "setTimeout").mockImplementation(hold as typeof setTimeout);
  jest.spyOn(globalThis, "clearTimeout").mockImplementation((timer) => {
    held.delete(timer);
    clear(timer);
  });
  return () => {
    for (const [timer, then] of [...held]) {
      clearTimeout(timer as NodeJS.Timeout);
      then();
    }
  };
}

/** A time of the product is another one, until `jest.restoreAllMocks()`. */
export function setTime<Name extends string>(times: Readonly<Record<Name, number>>, name: Name, ms: number): void {
  jest.replaceProperty(times as Record<string, number>, name, ms);
}

/** A delivery waits for look-ups as long as they take on a busy machine, until `jest.restoreAllMocks()`. */
export function waitForLookUps(): void {
  for (const times of [LOOK_UP, MANIFEST]) {
    setTime(times, "waitMs", LONG_MS);
    setTime(times.answer, "timeoutMs", LONG_MS);
  }
}
