import { beforeEach, expect, test } from "@jest/globals";
import { RecentDeliveries } from "../src/recent-deliveries.ts";

let recent: RecentDeliveries;

beforeEach(() => {
  recent = new RecentDeliveries();
});

const textOf = (n: number) => `{"payload":{},"sig":"${String(n).padStart(43, "A")}"}`;

test("what was not delivered is not known", () => {
  recent.add(textOf(1), 0);
  expect(recent.has(textOf(2), 0)).toBe(false);
});

test("what was delivered is known for a minute at least, and for two at most, whether anything else comes or not", () => {
  recent.add(textOf(1), 0);
  recent.add(textOf(2), 59_999);
  expect([recent.has(textOf(1), 60_000), recent.has(textOf(2), 119_999)]).toEqual([true, true]);
  expect(recent.has(textOf(2), 120_000)).toBe(false);
  recent.add(textOf(3), 200_000);
  expect([recent.has(textOf(3), 299_999), recent.has(textOf(3), 300_000)]).toEqual([true, false]);
});

test("what was delivered first is known for no less time while other deliveries come", () => {
  for (let second = 0; second <= 60; second += 1) recent.add(textOf(second), second * 1000);
  expect(recent.has(textOf(1), 61_000)).toBe(true);
  expect(recent.has(textOf(0), 120_000)).toBe(false);
});

test("of very many the last 200,000 are known, and at most twice as many", () => {
  const most = 200_000;
  for (let n = 0; n <= 2 * most; n += 1) recent.add(textOf(n), 0);
  expect([recent.has(textOf(2 * most), 0), recent.has(textOf(most), 0)]).toEqual([true, true]);
  expect(recent.has(textOf(most - 1), 0)).toBe(false);
});
