import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { fc } from "../../test/support/fast-check.ts";
import { Clock } from "../src/clock.ts";
import { DeliveredIds } from "../src/delivered-ids.ts";
import { MAX_DELIVERED_IDS, MAX_SENDERS } from "../src/limits.ts";
import { ReplayGuard } from "../src/replay-guard.ts";
import type { Envelope } from "../src/types.ts";

describe("The ids that were delivered", () => {
  const envelope = (from: string, id: string, ts: number) => ({ from, id, ts }) as Envelope;
  const isNew = (ids: DeliveredIds, one: Envelope) => ids.tsOf(one) === undefined && !ids.mayHaveHad(one);

  /** So many envelopes of some senders, in the order of their times, against it, or in none. */
  const flood = fc.record({
    from: fc.constantFrom("a", "b", "c"),
    senders: fc.constantFrom(1, 1, 1, 1500),
    envelopes: fc.integer({ min: 1, max: 15_000 }),
    begin: fc.integer({ min: -20_000, max: 20_000 }),
    step: fc.constantFrom(-1, 0, 1, 7919),
  });

  test("An id that was added never counts as new again, whoever sends how much and with whatever times", () => {
    fc.assert(
      fc.property(fc.array(flood, { minLength: 1, maxLength: 6 }), (floods) => {
        const ids = new DeliveredIds();
        const added: Envelope[] = [];
        for (const [round, { from, senders, envelopes, begin, step }] of floods.entries()) {
          for (let n = 0; n < envelopes; n += 1) {
            const ts = begin + ((n * step) % 15_013);
            const one = envelope(senders === 1 ? from : `${from}-${n % senders}`, `${round}-${n}`, ts);
            if (!isNew(ids, one)) continue;
            ids.add(one);
            added.push(one);
          }
          expect(added.find((one) => isNew(ids, one))).toBeUndefined();
          expect(added.filter((one) => ids.tsOf(one) === one.ts).length).toBeLessThanOrEqual(MAX_DELIVERED_IDS);
        }
      }),
      { numRuns: 12 },
    );
  });

  test("A sender that floods, with times of the future too, takes no other's room and makes nothing of others old", () => {
    const ids = new DeliveredIds();
    const first = envelope("alice", "first", 0);
    ids.add(first);
    for (let n = 0; n < 3 * MAX_DELIVERED_IDS; n += 1) ids.add(envelope("mallory", `${n}`, 1_000_000 + n));
    expect(ids.tsOf(first)).toBe(0);
    expect(isNew(ids, envelope("alice", "late", -1))).toBe(true);
  });

  test("What comes in the order of its times, or nearly, is new, however much it is", () => {
    const ids = new DeliveredIds();
    const sent = Array.from({ length: 3 * MAX_DELIVERED_IDS }, (_, n) => envelope("alice", `${n}`, n - (n % 64)));
    const refused = sent.filter((one) => {
      if (!isNew(ids, one)) return true;
      ids.add(one);
      return false;
    });
    expect(refused).toEqual([]);
  });

  test("So many senders are remembered, and who was heard last longest", () => {
    const ids = new DeliveredIds();
    const known = envelope("alice", "1", 5);
    ids.add(known);
    for (let n = 0; n < 2 * MAX_SENDERS; n += 1) {
      if (n === MAX_SENDERS / 2) ids.add(envelope("alice", "2", 6));
      ids.add(envelope(`sender-${n}`, "1", n));
    }
    const last = 2 * MAX_SENDERS - 1;
    const [early, late] = [envelope("sender-0", "1", 0), envelope(`sender-${last}`, "1", last)];
    const judged = [early, known, late].map((one) => [ids.tsOf(one), ids.mayHaveHad(one)]);
    expect(judged).toEqual([
      [undefined, true],
      [undefined, true],
      [last, false],
    ]);
  });

  test("Whoever comes and goes, with times of the future too, makes nothing old of others, but of very few", () => {
    const ids = new DeliveredIds();
    for (let n = 0; n < 3 * MAX_SENDERS; n += 1) {
      if (n % (MAX_SENDERS / 2) === 0) ids.add(envelope("alice", `${n}`, n));
      ids.add(envelope(`agent://open.sender-${n}`, "1", 1_000_000 + n));
    }
    expect(isNew(ids, envelope("alice", "next", 3 * MAX_SENDERS))).toBe(true);
    const newcomers = Array.from({ length: 1000 }, (_, n) => envelope(`agent://newcomer-${n}`, "first", 0));
    expect(newcomers.filter((one) => isNew(ids, one)).length).toBeGreaterThan(850);
  });

  test("A sender that is heard again after it was forgotten is not delivered its old ids anew", () => {
    const ids = new DeliveredIds();
    const first = envelope("alice", "1", 5);
    ids.add(first);
    for (let n = 0; n < MAX_SENDERS; n += 1) ids.add(envelope(`sender-${n}`, "1", n));
    ids.add(envelope("alice", "2", 2 * MAX_SENDERS));
    expect([ids.tsOf(first), isNew(ids, first)]).toEqual([undefined, false]);
  });
});

describe("The guard against replays", () => {
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

  test.each([0, Number.POSITIVE_INFINITY])(
    "With %d as the limit nothing is stale, and repeats are known",
    (maxAgeMs) => {
      const guard = guardOf(maxAgeMs);
      clock.measure(0);
      expect([guard.isStale(envelope("a", { ts: 0 })), guard.canJudge]).toEqual([false, true]);
      guard.remember(envelope("a", { ts: 0 }));
      expect(guard.isRepeat(envelope("a"))).toBe(true);
    },
  );

  test("A limit that is no number lets nothing in", () => {
    expect(guardOf(Number.NaN).isStale(envelope("a"))).toBe(true);
  });
});
