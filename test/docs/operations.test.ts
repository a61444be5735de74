import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { METRICS, type MetricEntry } from "runtime/metrics/catalogue.ts";
import { rowsBetween } from "../support/documents.ts";

const operations = await readFile(new URL("../../docs/operations.md", import.meta.url), "utf8");

describe("docs/operations.md", () => {
  test("lists every metric of the catalogue with its type, labels and meaning", () => {
    const expected = Object.entries(METRICS as Record<string, MetricEntry>).map(([name, { type, labels, help }]) => [
      `\`${name}\``,
      type,
      labels.map((label) => `\`${label}\``).join(", "),
      help,
    ]);
    expect(rowsBetween(operations, "metrics")).toEqual(expected);
  });

  test("alerts on nothing that is not measured", () => {
    const [, alerts = ""] = operations.split("## Alerts");
    const named = [...alerts.matchAll(/relay_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ""));
    expect(named.length).toBeGreaterThan(8);
    for (const name of named) expect(Object.keys(METRICS)).toContain(name);
  });
});
