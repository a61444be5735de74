import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { RequestQueue } from "../../src/http/request-queue.ts";

const LONG_TURN_MS = 5;
let queue: RequestQueue;
let begun: string[];
/** Monotonic ms. */
let now: number;

beforeEach(() => {
  now = 0;
  jest.spyOn(performance, "now").mockImplementation(() => now);
  queue = new RequestQueue();
  begun = [];
});
afterEach(() => void jest.restoreAllMocks());

/** @param ms what each takes of the event loop. */
function join(address: string, count = 1, ms = 0): void {
  const order = begun;
  for (let n = 0; n < count; n += 1) {
    queue.join(address, () => {
      order.push(`${address} ${n}`);
      now += ms;
    });
  }
}

/** So many turns of the event loop go by. */
async function pass(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await setImmediate();
}

describe("requests", () => {
  test("of one address begin one in a turn of the event loop after a long one, however many came in at once", async () => {
    join("a", 5);
    expect(begun).toEqual([]);
    for (let n = 1; n <= 5; n += 1) {
      await pass(1);
      expect(begun).toHaveLength(n);
      now += LONG_TURN_MS;
    }
  });

  test("of one address begin twice as many after each short turn, up to sixteen, and one again after a long one", async () => {
    join("a", 100);
    const counts: number[] = [];
    for (let n = 0; n < 7; n += 1) {
      const before = begun.length;
      await pass(1);
      counts.push(begun.length - before);
      if (n === 5) now += LONG_TURN_MS;
    }
    expect(counts).toEqual([1, 2, 4, 8, 16, 16, 1]);
  });

  test("of one address begin one in a turn while others connect", async () => {
    join("a", 100);
    for (let n = 0; n < 5; n += 1) join(`b${n}`, 100);
    await pass(3);
    begun.length = 0;
    queue.accepted();
    await pass(1);
    expect(begun).toHaveLength(6);
  });

  test("of many addresses share a turn of the event loop, as many as fit into its slice", async () => {
    for (let n = 0; n < 1000; n += 1) join(`quick${n}`);
    await pass(1);
    expect(begun).toHaveLength(1000);
    for (let n = 0; n < 10; n += 1) join(`slow${n}`, 1, 0.5);
    await pass(1);
    expect(begun).toHaveLength(1002);
    await pass(4);
    expect(begun).toHaveLength(1010);
  });

  test("begin however long each takes", async () => {
    for (let n = 0; n < 3; n += 1) join(`a${n}`, 1, 100);
    await pass(3);
    expect(begun).toEqual(["a0 0", "a1 0", "a2 0"]);
  });

  test("begin each once, in the order in which they came", async () => {
    join("a", 3);
    await pass(10);
    expect(begun).toEqual(["a 0", "a 1", "a 2"]);
  });

  test("of each address stand in order, and a newcomer's begins in the next turn, whatever others have sent", async () => {
    join("crowd", 100);
    join("other", 2);
    await pass(2);
    join("newcomer");
    await pass(1);
    const beforeIt = ["crowd 0", "other 0", "crowd 1", "other 1", "crowd 2", "crowd 3"];
    expect(begun).toEqual([...beforeIt, "newcomer 0", "crowd 4", "crowd 5", "crowd 6"]);
  });

  test("leave most turns to connections that wait to be accepted, and never all", async () => {
    join("a", 10);
    for (let n = 0; n < 45; n += 1) {
      queue.accepted();
      await pass(1);
    }
    expect(begun.length).toBeGreaterThanOrEqual(4);
    expect(begun.length).toBeLessThanOrEqual(6);
    await pass(10);
    expect(begun).toHaveLength(10);
  });

  test("of many addresses leave none: who comes anew would wait for all of them", async () => {
    for (let n = 0; n < 100; n += 1) join(`a${n}`, 1, 1);
    for (let n = 0; n < 50; n += 1) {
      queue.accepted();
      await pass(1);
    }
    expect(begun).toHaveLength(50);
  });
});
