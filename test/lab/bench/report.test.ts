import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { aimsTable, insertedInto, isMet, median, percentile, shown } from "../report.ts";
import { REDIS_CLIENT } from "./peers/peer.ts";
import { peersSection } from "./report-tmp.ts";
import { contendersOf, type Plan, titleOf } from "./plan.ts";
import { reportOf, reportText } from "./report.ts";
import { SYSTEM_TITLES, type SystemName } from "./systems/system.ts";

const PLAN: Plan = {
  rounds: 5,
  warmUpMs: 1000,
  measureMs: 3000,
  windows: [1],
  rates: [500],
  paceMs: 5000,
  systems: ["agent-relay", "bare"],
  before: undefined,
  memoryConnections: 1,
  idleConnections: 1,
  idleMs: 1,
  ours: () => [],
  say: () => {},
};

describe("The benchmark's report", () => {
  test("has its place in docs/performance.md, and leaves the rest of it alone", async () => {
    const document = await readFile(new URL("../../../docs/performance.md", import.meta.url), "utf8");
    const [before, after] = document.split(/<!-- benchmark[\s\S]*<!-- \/benchmark -->/u);
    const written = insertedInto(document, "benchmark", "the tables");
    expect(written).toContain("\nthe tables\n");
    expect(written.startsWith(before as string) && written.endsWith(after as string)).toBe(true);
    expect(insertedInto(written, "benchmark", "other tables")).not.toContain("\nthe tables\n");
  });

  test("says of each aim whether it is met", () => {
    expect(isMet({ name: "cost", value: 1.1, most: 1.1 })).toBe(true);
    expect(isMet({ name: "cost", value: 1.11, most: 1.1 })).toBe(false);
    expect(isMet({ name: "rate", value: 0.79, least: 0.8 })).toBe(false);
    expect(aimsTable("", [{ name: "rate", value: 0.79, least: 0.8 }])).toContain(
      "| at least 0.8 | 0.79 | **not met** |",
    );
  });

  test("lists the options of every peer that was measured, and says why each has them", () => {
    const { head, rows } = peersSection(Object.keys(SYSTEM_TITLES) as SystemName[]);
    const titles = rows.map(([title]) => title).filter((title) => title !== "");
    for (const [name, title] of Object.entries(SYSTEM_TITLES))
      if (name !== "agent-relay") expect(titles).toContain(title);
    for (const row of rows) expect(row.slice(1).map((cell) => cell.length > 0)).toEqual(head.slice(1).map(() => true));
    expect(peersSection(["bare"]).rows.map(([title]) => title)).not.toContain(SYSTEM_TITLES.nats);
  });

  test("has the peers' options in its text, with every section's table", () => {
    const section = { title: "Costs", about: "", head: ["", "µs"], rows: [["ours", "1"]], aims: [], data: null };
    const text = reportText(reportOf(PLAN, [section]));
    expect(text).toContain(`\`${Object.keys(REDIS_CLIENT)[0]}: true\``);
    expect(text).toContain("| ours | 1 |");
  });

  test("names the services of an earlier commit by it, and has none where none was asked for", () => {
    const before = { commit: "1a2b3c4", folder: "", [Symbol.asyncDispose]: async () => {} };
    const titles = (plan: Plan) => contendersOf(plan).map((contender) => titleOf(contender, plan));
    expect(titles({ ...PLAN, before })).toEqual([...titles(PLAN), "Agent Relay before (1a2b3c4)"]);
    expect(titles(PLAN)).toEqual([SYSTEM_TITLES["agent-relay"], SYSTEM_TITLES.bare]);
  });

  test("takes the middle of an odd number of rounds, and the mean of the two middle ones of an even number", () => {
    expect(median([9, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 9])).toBe(3);
  });

  test("takes percentiles by the nearest rank", () => {
    const hundred = Array.from({ length: 100 }, (_, n) => 100 - n);
    expect([percentile(hundred, 0.5), percentile(hundred, 0.99), percentile([7], 0.99)]).toEqual([50, 99, 7]);
    expect([percentile(hundred, 0.999), percentile([], 0.5)]).toEqual([100, Number.NaN]);
  });

  test("shows three digits that count", () => {
    expect([12_345.6, 123.4, 12.34, 1.2, 0.1234].map(shown)).toEqual(["12,346", "123", "12.3", "1.2", "0.123"]);
  });
});
