import { afterEach, expect, jest, test } from "@jest/globals";
import { WallClock } from "../src/tracing/open-telemetry.ts";

afterEach(() => {
  jest.restoreAllMocks();
});

test("times keep their order and their distances while nobody sets the clock", () => {
  const clock = new WallClock();
  const first = clock.at(performance.now());
  expect(clock.at(performance.now() + 1.25) - first).toBeGreaterThanOrEqual(1.25);
  expect(Math.abs(first - Date.now())).toBeLessThan(1000);
});

test("a clock that is set, or a machine that was suspended, is followed", () => {
  const clock = new WallClock();
  const now = Date.now();
  jest.spyOn(Date, "now").mockReturnValue(now + 3_600_000);
  expect(Math.abs(clock.at(performance.now()) - now - 3_600_000)).toBeLessThan(1000);
});
