import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { insertedInto } from "./document.ts";
import { aimsTable, isMet, shown } from "./section.ts";
import { median, percentile } from "./statistics.ts";

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

  test("takes the middle of an odd number of rounds, and the mean of the two middle ones of an even number", () => {
    expect(median([9, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 9])).toBe(3);
  });

  test("takes percentiles by the nearest rank", () => {
    const hundred = Array.from({ length: 100 }, (_, n) => 100 - n);
    expect([percentile(hundred, 0.5), percentile(hundred, 0.99), percentile([7], 0.99)]).toEqual([50, 99, 7]);
  });

  test("shows three digits that count", () => {
    expect([12_345.6, 123.4, 12.34, 1.2, 0.1234].map(shown)).toEqual(["12,346", "123", "12.3", "1.2", "0.123"]);
  });
});
