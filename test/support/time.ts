import { setTimeout as delay } from "node:timers/promises";
import { jest } from "@jest/globals";

/** Timers fire when the test says so. Clocks go on, and so does what sockets need. @param keepReal goes on also. */
export function fakeTimers(...keepReal: readonly ("setTimeout" | "clearTimeout")[]): void {
  jest.useFakeTimers({
    doNotFake: [
      ...(["nextTick", "setImmediate", "clearImmediate", "queueMicrotask"] as const),
      ...(["Date", "performance", "hrtime"] as const),
      ...keepReal,
    ],
  });
}

const STEP_MS = 10;

/** Resolves when this process has run for `ms`. Time in which a busy machine did not let it run does not count. */
export async function ownTime(ms: number): Promise<"late"> {
  for (let passed = 0; passed < ms; passed += STEP_MS) await delay(STEP_MS);
  return "late";
}
