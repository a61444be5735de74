import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { RequestQueue } from "../../src/http/request-queue.ts";

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
  test("of one address begin one in a turn of the event loop, however many came in at once", async () => {
    join("a", 5);
    expect(begun).toEqual([]);
    for (let n = 1; n <= 5; n += 1) {
      await pass(1);
      expect(begun).toHaveLength(n);
    }
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
    expect(begun).toEqual(["crowd 0", "other 0", "crowd 1", "other 1", "crowd 2", "newcomer 0"]);
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
