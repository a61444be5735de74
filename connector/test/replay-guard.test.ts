import { afterEach, expect, jest, test } from "@jest/globals";
import { Clock } from "../src/clock.ts";
import { MAX_DELIVERED_IDS } from "../src/limits.ts";
import { ReplayGuard } from "../src/replay-guard.ts";
import type { Envelope } from "../src/types.ts";

const NOW = 1_790_000_000_000;
const MINUTE_MS = 60_000;
afterEach(() => {
  jest.restoreAllMocks();
});

let time = NOW;
jest.spyOn(Date, "now").mockImplementation(() => time);
const clock = new Clock();
const guardOf = (maxAgeMs: number, isPinned: (agent: string) => boolean = () => true) => {
  time = NOW;
  jest.spyOn(Date, "now").mockImplementation(() => time);
  clock.measure(NOW);
  return new ReplayGuard(clock, maxAgeMs, isPinned);
};
const envelope = (id: string, fields: Partial<Envelope> = {}): Envelope => ({
  ...{
    id,
    type: "message.send",
    from: "agent://alice",
    to: "agent://bob",
    payload: {},
    ts: NOW,
    key_id: "k",
    sig: "s",
  },
  ...fields,
});

/** What the connector does with a delivery. @returns true when it reaches the application. */
function delivers(guard: ReplayGuard, delivery: Envelope): boolean {
  if (guard.isRepeat(delivery) || guard.isStale(delivery)) return false;
  guard.remember(delivery);
  return true;
}

test("An id counts once a sender, whatever its key; another sender's is another", () => {
  const guard = guardOf(10 * MINUTE_MS);
  guard.remember(envelope("a"));
  expect(guard.isRepeat(envelope("a", { key_id: "other", payload: { n: 1 } }))).toBe(true);
  expect(guard.isRepeat(envelope("b"))).toBe(false);
  expect(guard.isRepeat(envelope("a", { from: "agent://carol" }))).toBe(false);
});

test("An id that its sender used for another envelope before is told apart from the same envelope again", () => {
  const guard = guardOf(10 * MINUTE_MS);
  guard.remember(envelope("a"));
  guard.remember(envelope("b"));
  for (const id of ["a", "b"]) {
    expect(guard.isReused(envelope(id))).toBe(false);
    expect(guard.isReused(envelope(id, { ts: NOW + 1 }))).toBe(true);
  }
  expect(guard.isReused(envelope("c"))).toBe(false);
});

test("What pinned agents sent is remembered, and new of them comes in, however much others send", () => {
  const guard = guardOf(10 * MINUTE_MS, (agent) => agent === "agent://alice");
  guard.remember(envelope("a"));
  for (let n = 0; n < 2 * MAX_DELIVERED_IDS; n += 1) {
    guard.remember(envelope(`${n}`, { from: `agent://stranger-${n}`, ts: NOW + MINUTE_MS }));
  }
  expect(guard.isRepeat(envelope("a"))).toBe(true);
  expect(guard.isStale(envelope("b", { ts: NOW - MINUTE_MS }))).toBe(false);
  expect(guard.isStale(envelope("0", { from: "agent://stranger-0", ts: NOW + MINUTE_MS }))).toBe(true);
});

test("Nothing is delivered twice, whichever way the relay and the machine move the clock meanwhile", () => {
  const guard = guardOf(10 * MINUTE_MS);
  expect(delivers(guard, envelope("a"))).toBe(true);
  for (let minute = 0; minute < 60; minute += 1) {
    time = NOW + (minute % 30) * MINUTE_MS;
    expect(delivers(guard, envelope(`at-${minute}`, { ts: time }))).toBe(true);
    for (const off of [-60, -5, 0, 5, 60]) {
      clock.measure(time + off * MINUTE_MS);
      expect(delivers(guard, envelope("a"))).toBe(false);
    }
    clock.measure(time);
  }
});

test.each([0, Number.POSITIVE_INFINITY])("With %d as the limit nothing is stale, and repeats are known", (maxAgeMs) => {
  const guard = guardOf(maxAgeMs);
  clock.measure(0);
  expect([guard.isStale(envelope("a", { ts: 0 })), guard.canJudge]).toEqual([false, true]);
  guard.remember(envelope("a", { ts: 0 }));
  expect(guard.isRepeat(envelope("a"))).toBe(true);
});

test("A limit that is no number lets nothing in", () => {
  expect(guardOf(Number.NaN).isStale(envelope("a"))).toBe(true);
});
