import { afterEach, expect, jest, test } from "@jest/globals";
import { Clock } from "../src/clock.ts";
import { MAX_SEEN } from "../src/limits.ts";
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
const guardOf = (maxAgeMs: number) => {
  time = NOW;
  jest.spyOn(Date, "now").mockImplementation(() => time);
  clock.measure(NOW);
  return new ReplayGuard(clock, maxAgeMs);
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

test("An id counts once a sender, whatever its key; another sender's is another", () => {
  const guard = guardOf(10 * MINUTE_MS);
  guard.remember(envelope("a"), "agent");
  expect(guard.isRepeat(envelope("a", { key_id: "other", payload: { n: 1 } }))).toBe(true);
  expect(guard.isRepeat(envelope("b"))).toBe(false);
  expect(guard.isRepeat(envelope("a", { from: "agent://carol" }))).toBe(false);
});

test("An id that its sender used for another envelope before is told apart from the same envelope again", () => {
  const guard = guardOf(10 * MINUTE_MS);
  guard.remember(envelope("a"), "agent");
  guard.remember(envelope("b"), "unverified");
  for (const id of ["a", "b"]) {
    expect(guard.isReused(envelope(id))).toBe(false);
    expect(guard.isReused(envelope(id, { ts: NOW + 1 }))).toBe(true);
  }
  expect(guard.isReused(envelope("c"))).toBe(false);
});

test("What is verified is remembered however much comes in that is not", () => {
  const guard = guardOf(10 * MINUTE_MS);
  guard.remember(envelope("a"), "agent");
  for (let n = 0; n <= MAX_SEEN; n += 1) guard.remember(envelope(`made-up-${n}`), "unverified");
  expect(guard.isRepeat(envelope("a"))).toBe(true);
  expect(guard.isRepeat(envelope("made-up-0"))).toBe(false);
  expect(guard.isRepeat(envelope("made-up-1"))).toBe(true);
});

test("Nothing is forgotten before it is stale, whichever way the relay moves the clock meanwhile", () => {
  const guard = guardOf(10 * MINUTE_MS);
  guard.remember(envelope("a"), "agent");
  for (let minute = 0; minute < 30; minute += 1) {
    time = NOW + minute * MINUTE_MS;
    guard.remember(envelope(`later-${minute}`, { ts: time }), "agent");
    for (const off of [-5, 0, 5]) {
      clock.measure(time + off * MINUTE_MS);
      expect(guard.isStale(envelope("a")) || guard.isRepeat(envelope("a"))).toBe(true);
    }
  }
  expect(guard.isRepeat(envelope("a"))).toBe(false);
});

test.each([0, Number.POSITIVE_INFINITY])("With %d as the limit nothing is stale, and repeats are known", (maxAgeMs) => {
  const guard = guardOf(maxAgeMs);
  clock.measure(0);
  expect([guard.isStale(envelope("a", { ts: 0 })), guard.canJudge]).toEqual([false, true]);
  guard.remember(envelope("a", { ts: 0 }), "agent");
  expect(guard.isRepeat(envelope("a"))).toBe(true);
});

test("A limit that is no number lets nothing in", () => {
  expect(guardOf(Number.NaN).isStale(envelope("a"))).toBe(true);
});
