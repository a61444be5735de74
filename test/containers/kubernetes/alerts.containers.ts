import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { alertsOf } from "../../support/alerts.ts";
import { environmentOf } from "./environment.ts";
import { mainContainer, named, render } from "./manifests.ts";

const operations = await readFile(new URL("../../../docs/operations.md", import.meta.url), "utf8");
const objects = await render("production");
const groups = named(objects, "PrometheusRule", "agent-relay").spec?.groups ?? [];
const rules = groups.flatMap((group) => group.rules ?? []);

describe("The alerts of production", () => {
  test("are those of docs/operations.md, with the same times and the same advice", () => {
    const documented = alertsOf(operations);
    expect(documented.length).toBeGreaterThan(10);
    const made = rules.map(({ expr, for: wait, annotations }) => ({ expr, for: wait, ...annotations }));
    expect(made).toEqual(documented);
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
