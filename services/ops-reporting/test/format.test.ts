import { expect, test } from "@jest/globals";
import { duration } from "../src/reports/figures.ts";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_599_999, "59 min"],
  [3_600_000, "1 h 0 min"],
  [10_799_999, "2 h 59 min"],
])("%d ms is shown as %s", (ms, shown) => {
  expect(duration(ms)).toBe(shown);
});
