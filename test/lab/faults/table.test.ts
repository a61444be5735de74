import { expect, test } from "@jest/globals";
import type { Outcome } from "./support/outcome.ts";
import { markdownOf, missingIn, tableOf } from "./support/table.ts";

const outcome: Outcome = {
  fault: "Redis silent",
  times: 3,
  sent: 1100,
  acked: 99,
  promised: 97,
  delivered: 98,
  refused: 40,
  violations: [{ kind: "delivered twice", id: "e" }],
  forgotten: 2,
  unavailable: [700, 1200.2, 900],
  recoveries: [5, 300, 20.4],
};

test("the table has a line for every fault, with the median and the longest recovery", () => {
  const [head, line] = tableOf(["Redis silent"], [outcome]).split("\n");
  expect(head).toMatch(
    /^fault +times injected +sent +acked +promised +delivered +refused +violations +forgotten +unavailable median, ms +max, ms +recovery median, ms +max, ms$/,
  );
  expect(line).toMatch(/^Redis silent +3 +1,100 +99 +97 +98 +40 +1 +2 +900 +1200 +20 +300$/);
  expect(tableOf(["Redis silent"], [{ ...outcome, recoveries: [] }])).toMatch(/ 2 +900 +1200 +– +–\n/);
});

test("a document has the same table", () => {
  const [head, rule, line] = markdownOf(["Redis silent"], [outcome]).split("\n");
  expect(head).toMatch(/^\| fault \| times injected \|.* \| max, ms \|$/);
  expect(rule).toMatch(/^(\| --- )+\|$/);
  expect(line).toBe("| Redis silent | 3 | 1,100 | 99 | 97 | 98 | 40 | 1 | 2 | 900 | 1200 | 20 | 300 |");
});

test("a fault that did not run is missing, and the table says so in its line", () => {
  expect(tableOf(["Redis silent", "Redis slow"], [outcome])).toMatch(/\nRedis slow +did not come through\n/);
  expect(missingIn(["Redis silent", "Redis slow"], [outcome])).toEqual(["Redis slow"]);
  expect(missingIn(["Redis silent"], [outcome])).toEqual([]);
});
