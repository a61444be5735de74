import { describe, expect, test } from "@jest/globals";
import { dueAt, dueBy } from "./schedule.ts";

describe("The schedule of a fixed rate", () => {
  test("has the first message at once, and so many in each second, evenly", () => {
    expect([0, 1, 2, 500].map((n) => dueAt(n, 500))).toEqual([0, 2, 4, 1000]);
    expect([0, 1.9, 2, 999.9, 1000].map((at) => dueBy(at, 500))).toEqual([1, 1, 2, 500, 501]);
  });

  test("has nothing due before it starts", () => {
    expect(dueBy(-0.1, 500)).toBe(0);
  });

  test("has all that a stall delayed due at once, each since its own time", () => {
    const before = dueBy(10, 1000);
    const after = dueBy(60, 1000);
    expect(after - before).toBe(50);
    expect(60 - dueAt(before, 1000)).toBe(49);
  });
});
