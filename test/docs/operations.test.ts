import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { METRICS, type MetricEntry } from "relay-runtime/metrics/catalogue.ts";
import { parse } from "yaml";
import { alertsOf } from "../support/alerts.ts";
import { rowsBetween } from "../support/documents.ts";

const operations = await readFile(new URL("../../docs/operations.md", import.meta.url), "utf8");

interface Rule {
  readonly expr: string;
  readonly for?: string;
  readonly annotations: { readonly description: string };
}

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

  test("has the alerts of production, with the same times and the same advice", async () => {
    const file = new URL("../../deploy/kubernetes/overlays/production/alerts.yaml", import.meta.url);
    const groups: { rules: Rule[] }[] = parse(await readFile(file, "utf8")).spec.groups;
    const rules = groups.flatMap((group) => group.rules);
    const made = rules.map(({ expr, for: wait, annotations }) => ({ expr, for: wait, ...annotations }));
    expect(made.length).toBeGreaterThan(10);
    expect(made).toEqual(alertsOf(operations));
  });

  test("alerts on nothing that is not measured", () => {
    const [, alerts = ""] = operations.split("## Alerts");
    const named = [...alerts.matchAll(/relay_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ""));
    expect(named.length).toBeGreaterThan(8);
    for (const name of named) expect(Object.keys(METRICS)).toContain(name);
  });
});
