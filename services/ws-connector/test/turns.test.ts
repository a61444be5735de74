import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Turns, type TurnTaker } from "../src/turns.ts";

const COST_MS = 5;
let now = 0;
let order: string[];
let turns: Turns;

/** Joins again after each of its turns, each of which takes the event loop for some time. */
function flooder(name: string, address: object): TurnTaker {
  const taker = {
    address,
    takeTurn: () => {
      order.push(name);
      now += COST_MS;
      turns.join(taker);
    },
  };
  return taker;
}

beforeEach(() => {
  order = [];
  turns = new Turns();
  jest.useFakeTimers();
  now = 1_000_000;
  jest.spyOn(performance, "now").mockImplementation(() => now);
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** Time goes by, a millisecond at a time. */
function pass(ms: number): void {
  for (let n = 0; n < ms; n += 1) {
    now += 1;
    jest.advanceTimersByTime(1);
  }
}

describe("turns", () => {
  test("take a tenth of the event loop, however many wait for one", () => {
    for (let n = 0; n < 100; n += 1) turns.join(flooder(`${n}`, {}));
    const startedAt = now;
    pass(10_000);
    const share = (order.length * COST_MS) / (now - startedAt);
    expect(share).toBeGreaterThan(0.09);
    expect(share).toBeLessThan(0.11);
  });

  test("are given at once when nobody else has one", () => {
    turns.join(flooder("alone", {}));
    jest.advanceTimersByTime(0);
    expect(order).toEqual(["alone"]);
  });

  test("go round: a newcomer waits for one turn of each address, not of each connection", () => {
    const crowd = {};
    for (let n = 0; n < 50; n += 1) turns.join(flooder("crowd", crowd));
    turns.join(flooder("other", {}));
    pass(1000);
    order = [];
    turns.join(flooder("newcomer", {}));
    pass(1000);
    expect(order.slice(0, 3)).toContain("newcomer");
  });

  test("go round the connections of one address", () => {
    const address = {};
    for (const name of ["a", "b", "c"]) turns.join(flooder(name, address));
    pass(2000);
    expect(order.slice(0, 6)).toEqual(["a", "b", "c", "a", "b", "c"]);
  });

  test("are not given to who has left", () => {
    const taker = flooder("gone", {});
    turns.join(taker);
    turns.leave(taker);
    pass(100);
    expect(order).toEqual([]);
  });
});
