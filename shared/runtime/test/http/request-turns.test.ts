import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { RequestTurns } from "../../src/http/request-turns.ts";

let turns: RequestTurns;
let begun: string[];

beforeEach(() => {
  turns = new RequestTurns();
  begun = [];
});

function join(address: string, count = 1): void {
  const order = begun;
  for (let n = 0; n < count; n += 1) turns.join(address, () => order.push(`${address} ${n}`));
}

/** So many turns of the event loop go by. */
async function pass(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await setImmediate();
}

describe("requests", () => {
  test("begin one in a turn of the event loop, however many came in at once", async () => {
    join("a", 5);
    expect(begun).toEqual([]);
    for (let n = 1; n <= 5; n += 1) {
      await pass(1);
      expect(begun).toHaveLength(n);
    }
  });

  test("begin each once, in the order in which they came", async () => {
    join("a", 3);
    await pass(10);
    expect(begun).toEqual(["a 0", "a 1", "a 2"]);
  });

  test("of each address stand in order, and a newcomer's is next but one, whatever others have sent", async () => {
    join("crowd", 100);
    join("other", 2);
    await pass(2);
    join("newcomer");
    await pass(3);
    expect(begun).toEqual(["crowd 0", "other 0", "crowd 1", "other 1", "newcomer 0"]);
  });

  test("leave most turns to connections that wait to be accepted, and never all", async () => {
    join("a", 10);
    for (let n = 0; n < 45; n += 1) {
      turns.accepted();
      await pass(1);
    }
    expect(begun.length).toBeGreaterThanOrEqual(4);
    expect(begun.length).toBeLessThanOrEqual(6);
    await pass(10);
    expect(begun).toHaveLength(10);
  });

  test("of many addresses leave none: who comes anew would wait for all of them", async () => {
    for (let n = 0; n < 100; n += 1) join(`a${n}`);
    for (let n = 0; n < 50; n += 1) {
      turns.accepted();
      await pass(1);
    }
    expect(begun).toHaveLength(50);
  });
});
