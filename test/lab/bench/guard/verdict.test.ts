import { describe, expect, test } from "@jest/globals";
import { LOADS, recorded, verdictOf } from "./verdict.ts";

describe("The guard of what an envelope costs", () => {
  const RECORDED = { "window 8": 1 };

  test.each([
    [1.2, "as it was"],
    [0.8, "as it was"],
    [1.21, "slower"],
    [0.79, "faster"],
  ])("calls %d times the bare relay's cost, with 1 recorded, %s", (measured, verdict) => {
    expect(verdictOf("window 8", measured, RECORDED)).toBe(verdict);
  });

  test("does not pass what was not measured, or has no record", () => {
    expect(() => verdictOf("window 8", Number.NaN, RECORDED)).toThrow("Nothing was measured");
    expect(() => verdictOf("window 9", 1, RECORDED)).toThrow("Nothing is recorded");
  });

  test("has a record of each load that it measures, and of no other", async () => {
    expect(Object.keys(await recorded()).sort()).toEqual(LOADS.toSorted());
  });
});
