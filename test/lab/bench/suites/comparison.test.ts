import { describe, expect, test } from "@jest/globals";
import { BEFORE, type Contender, REDIS, SENDING } from "../systems/system.ts";
import { aimsOf, type Cell, costCells, type Limits, ratio, ratioCell, shareOf } from "./comparison.ts";

/** A cell of 100 messages that took so many µs each, half of them in Redis. */
function cell(system: Contender, cost: number, { round = 0, load = 8 } = {}): Cell {
  const cpu = { [SENDING]: cost * 50, [REDIS]: cost * 50 };
  return { system, round, load, seconds: 2, cpu, delivered: 100, generatorShare: 0, madeLate: 0 };
}

const limits = (peers: readonly Contender[]): Limits<Cell>[] => [
  { name: (load) => `at ${load}`, peers, most: { 8: 1 } },
];

describe("A comparison", () => {
  test("is made within each round, and the middle of the rounds counts", () => {
    const cells = [
      ...[10, 30, 10].map((cost, round) => cell("agent-relay", cost, { round })),
      ...[5, 10, 10].map((cost, round) => cell("bare", cost, { round })),
    ];
    expect(ratio(cells, "bare", 8)).toBe(2);
  });

  test("is made with the peer that is hardest on ours, where several count as one", () => {
    const cells = [cell("agent-relay", 10), cell("socket.io", 40), cell("socket.io-sharded", 20)];
    expect(aimsOf(limits(["socket.io", "socket.io-sharded"]), cells)).toEqual([{ name: "at 8", value: 0.5, most: 1 }]);
  });

  test("is left out where a peer that counts was not measured", () => {
    const cells = [cell("agent-relay", 10), cell("socket.io", 40), cell("bare", 10, { load: 1 })];
    expect(aimsOf(limits(["socket.io", "socket.io-sharded"]), cells)).toEqual([]);
    expect(aimsOf(limits(["bare"]), cells)).toEqual([]);
    expect(ratioCell(cells, "nats", 8)).toBe("–");
  });

  test("may be of one process alone", () => {
    const cells = [cell("agent-relay", 10), { ...cell("bare", 10), cpu: { [SENDING]: 900, [REDIS]: 100 } }];
    expect(ratio(cells, "bare", 8, shareOf(REDIS))).toBe(5);
  });

  test("is made with ours of an earlier commit, too", () => {
    const cells = [cell("agent-relay", 9), cell(BEFORE, 10)];
    expect([ratioCell(cells, BEFORE, 8), ratioCell(cells, "agent-relay", 8)]).toEqual(["0.90 ×", ""]);
  });

  test("shows how many a second, and the cost of one, in all and by process", () => {
    expect(costCells([cell("nats", 12)])).toEqual(["50", "12", "6", "–", "6"]);
  });
});
