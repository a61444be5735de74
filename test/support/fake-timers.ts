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
