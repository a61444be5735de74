import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { METRICS } from "relay-runtime/metrics/catalogue.ts";
import { parse } from "yaml";
import { ROWS } from "../../deploy/monitoring/dashboard.ts";
import { monitoringFiles } from "../../deploy/monitoring/main.ts";
import { SERVICES, Services } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { Prometheus } from "./prometheus.ts";

const FOLDER = new URL("../../deploy/monitoring/", import.meta.url);
const queries = ROWS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries.map(({ expr }) => expr)));
/** Names in a query, less those of functions, labels and values. */
const namesIn = (expr: string) => expr.replaceAll(/"[^"]*"/g, "").match(/\b(relay|process|nodejs)_\w+/g) ?? [];

describe("The dashboard", () => {
  test.each(["grafana/agent-relay.json", "rules.yml"])("%s is what is made now: npm run monitoring", async (path) => {
    const file = new URL(path, FOLDER).pathname;
    expect(await readFile(file, "utf8")).toBe((await monitoringFiles()).get(file));
  });

  test("asks for metrics of the catalogue, and leaves none out", () => {
    const names = queries.flatMap(namesIn).filter((name) => name.startsWith("relay_"));
    const asked = new Set(names.map((name) => name.replace(/_(bucket|sum|count)$/, "")));
    expect([...asked].toSorted()).toEqual(Object.keys(METRICS).toSorted());
  });

  test("has panels that do not lie over each other, each in the width of the page", async () => {
    const { panels } = JSON.parse(await readFile(new URL("grafana/agent-relay.json", FOLDER), "utf8"));
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }: { gridPos: Record<"x" | "y" | "w" | "h", number> }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(cells.every((cell: string) => Number.parseInt(cell, 10) < 24)).toBe(true);
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length);
  });

  test("finds the Prometheus of compose, whose services are those of the compose file", async () => {
    const compose = parse(await readFile(new URL("../../docker-compose.yml", import.meta.url), "utf8"), {
      merge: true,
    });
    const { scrape_configs } = parse(await readFile(new URL("prometheus.yml", FOLDER), "utf8"));
    const [{ names, port }] = scrape_configs[0].dns_sd_configs;
    for (const name of names) expect([name, compose.services[name].environment.METRICS_PORT]).toEqual([name, port]);
    const { datasources } = parse(
      await readFile(new URL("grafana/provisioning/datasources/prometheus.yaml", FOLDER), "utf8"),
    );
    expect(datasources).toMatchObject([{ url: "http://prometheus:9090", isDefault: true }]);
  });
});

describe("Prometheus", () => {
  const relay = useRelay("alice", "bob-hmac");
  const services = given(() => Services.start((name, settings) => relay.startService(name, settings)));
  const prometheus = given(async () => {
    const server = new Prometheus(
      SERVICES.map((name) => services.metricsOf(name)),
      new URL("rules.yml", FOLDER).pathname,
    );
    relay.defer(() => server.stop());
    await server.start();
    return server;
  });
  /** As Grafana would ask, of scrapes that come four times a second. */
  const asked = (expr: string) => expr.replaceAll("$__rate_interval", "5s").replaceAll("$__range", "1m");
  const isEmpty = async (expr: string) => (await prometheus.query(asked(expr))).length === 0;

  test("scrapes each service, and every query of the dashboard answers; all but those of a cluster and of faults with series", async () => {
    const alice = await relay.online(services.pod("ws-connector"), "alice");
    await relay.online(services.pod("ws-connector"), "bob-hmac");
    await until("all services are scraped", async () => (await prometheus.query("up == 1")).length === 3);
    const traffic = async () => {
      const message = relay.envelope("alice", "message.send", { to: "agent://bob-hmac" });
      await alice.ask(message);
      await alice.ask(message);
      await alice.ask(relay.envelope("alice", "message.send", { to: "agent://bob-hmac", sig: "A".repeat(86) }));
      for (const path of ["/health", "/robots.txt"]) await fetch(services.pod("gateway").url + path);
    };
    const REST = [
      'relay_http_requests_total{status=~"5.."}',
      "relay_connections_closed_total",
      "relay_limits_total",
      "relay_connections_refused_total",
      "relay_key_refusals_total",
      "relay_certificate_end_time_seconds",
      "relay_redis_down",
      "relay_redis_failures_total",
      "relay_redis_replicas",
      "relay_redis_replica_lag_bytes",
    ];
    const expected = queries.filter((expr) => REST.some((series) => expr.includes(series)));
    expect(expected).toHaveLength(REST.length);
    let empty: readonly string[] = [];
    await until("the queries have series", async () => {
      await traffic();
      const answers = await Promise.all(queries.map(isEmpty));
      empty = queries.filter((_, n) => answers[n]);
      return empty.length === expected.length;
    }).catch(() => {});
    expect(empty).toEqual(expected);
  });

  test("evaluates every alert, and none fires of a relay that is well", async () => {
    await until("all are evaluated", async () => {
      const rules = await prometheus.rules();
      return rules.length > 10 && rules.every(([, error]) => error === undefined);
    });
    expect(await prometheus.query('ALERTS{alertstate="firing"}')).toEqual([]);
  });
});
