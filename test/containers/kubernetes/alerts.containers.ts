import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { environmentOf } from "./environment.ts";
import { mainContainer, named, render } from "./manifests.ts";

const operations = await readFile(new URL("../../../docs/operations.md", import.meta.url), "utf8");
const objects = await render("production");
const groups = named(objects, "PrometheusRule", "agent-relay").spec?.groups ?? [];
const rules = groups.flatMap((group) => group.rules ?? []);

/** Rows of the table under "Alerts", cells as text. */
function alertsOf(document: string): string[][] {
  const section = document.split("\n## Alerts\n")[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|")),
  );
}

/** As Prometheus writes it: "5 min" is 5m; "–" is none. */
function duration(text = ""): string | undefined {
  const [, count, unit] = /^([0-9]+) (s|min)$/.exec(text) ?? [];
  return count && `${count}${unit === "min" ? "m" : "s"}`;
}

describe("The alerts of production", () => {
  test("are those of docs/operations.md, with the same times and the same advice", () => {
    const documented = alertsOf(operations).map(([when = "", wait, means]) => [
      when.replace(/^`(.*)`$/, "$1"),
      duration(wait),
      means,
    ]);
    expect(documented.length).toBeGreaterThan(10);
    expect(rules.map((rule) => [rule.expr, rule.for, rule.annotations?.description])).toEqual(documented);
  });

  test("have each a name of their own and a severity", () => {
    const names = rules.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(rules.length);
    for (const name of names) expect(name).toMatch(/^([A-Z][a-z]+)+$/);
    for (const { labels } of rules) expect(["critical", "warning"]).toContain(labels?.severity);
  });

  test("know how many connections a pod takes", () => {
    const container = mainContainer(named(objects, "Deployment", "ws-connector"));
    const { maxConnections } = readWsConnectorSettings(environmentOf(objects, container));
    expect(rules.map(({ expr }) => expr)).toContain(`relay_connections > 0.8 * ${maxConnections}`);
  });
});
