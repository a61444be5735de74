/** Rows of panels as the JSON that Grafana imports. Pure. */

const COLUMNS = 24;
const WIDTH = 8;
const HEIGHT = 8;
/** Chosen by who looks: whichever Prometheus scrapes the relay. */
const DATASOURCE = { type: "prometheus", uid: `\${datasource}` };
/** The oldest version of Grafana whose JSON this is. */
const SCHEMA_VERSION = 39;

export function dashboardOf(rows: readonly Row[]): object {
  return {
    uid: "agent-relay",
    title: "Agent Relay",
    tags: ["agent-relay"],
    schemaVersion: SCHEMA_VERSION,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    templating: {
      list: [{ name: "datasource", type: "datasource", query: "prometheus", label: "Prometheus" }],
    },
    panels: numbered(placed(rows)),
  };
}

/** Rows one below the other, panels side by side. */
function placed(rows: readonly Row[]): object[] {
  let y = 0;
  return rows.flatMap(({ title, panels }) => {
    const head = { type: "row", title, collapsed: false, gridPos: { x: 0, y, w: COLUMNS, h: 1 } };
    const top = y + 1;
    y = top + Math.ceil((panels.length * WIDTH) / COLUMNS) * HEIGHT;
    return [head, ...panels.map((panel, n) => ({ ...panelOf(panel), gridPos: positionOf(n, top) }))];
  });
}

function positionOf(n: number, top: number): object {
  const place = n * WIDTH;
  return { x: place % COLUMNS, y: top + Math.floor(place / COLUMNS) * HEIGHT, w: WIDTH, h: HEIGHT };
}

function panelOf({ title, description, unit, queries }: Panel): object {
  return {
    type: "timeseries",
    title,
    ...(description && { description }),
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: queries.map(({ expr, legend }, n) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + n),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

function numbered(panels: readonly object[]): object[] {
  return panels.map((panel, n) => ({ id: n + 1, ...panel }));
}

/** What the Grafana dashboard shows. Source: docs/operations.md#dashboard. */

/** One line, or one for each combination of labels. */
interface Query {
  readonly expr: string;
  /** Of Grafana: `{{label}}` is replaced. */
  readonly legend: string;
}

/** A unit of Grafana's. */
type Unit = "short" | "reqps" | "s" | "bytes" | "percentunit";

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Grafana's, at least four times as long as the interval of scrapes. */
const RATE = "$__rate_interval";

const panel = (title: string, unit: Unit, ...queries: readonly (readonly [string, string])[]): Panel => ({
  title,
  unit,
  queries: queries.map(([expr, legend]) => ({ expr, legend })),
});
const explained = (description: string, explainedPanel: Panel): Panel => ({ ...explainedPanel, description });
const rateBy = (labels: string, series: string) => `sum by (${labels}) (rate(${series}[${RATE}]))`;
const quantileBy = (quantile: number, labels: string, histogram: string) =>
  `histogram_quantile(${quantile}, ${rateBy(`le, ${labels}`, `${histogram}_bucket`)})`;
/** @param matchers of the histogram's series. */
const quantilesByService = (histogram: string, matchers = "") =>
  [0.5, 0.95, 0.99].map((quantile) => {
    const expr = `histogram_quantile(${quantile}, ${rateBy("le, service", `${histogram}_bucket${matchers}`)})`;
    return [expr, `p${quantile * 100} {{service}}`] as const;
  });

export const ROWS: readonly Row[] = [
  {
    title: "Traffic",
    panels: [
      panel("Envelopes accepted", "reqps", [rateBy("type", 'relay_envelopes_total{outcome="accepted"}'), "{{type}}"]),
      explained(
        "Repeats that the replay guard recognised: clients that send again what had no answer.",
        panel("Duplicates", "reqps", [rateBy("type", 'relay_envelopes_total{outcome="duplicate"}'), "{{type}}"]),
      ),
      panel("Deliveries by the target's status", "reqps", [rateBy("status", "relay_deliveries_total"), "{{status}}"]),
      panel("HTTP requests", "reqps", [rateBy("surface", "relay_http_requests_total"), "{{surface}}"]),
      panel("HTTP answers of 5xx", "reqps", [
        rateBy("surface, status", 'relay_http_requests_total{status=~"5.."}'),
        "{{surface}} {{status}}",
      ]),
    ],
  },
  {
    title: "Latency",
    panels: [
      panel("Acks of envelopes", "s", ...quantilesByService("relay_ack_seconds")),
      panel(
        "HTTP requests, without probes",
        "s",
        ...quantilesByService("relay_http_request_seconds", '{group!="probes"}'),
      ),
      panel("HTTP requests by group, p99", "s", [quantileBy(0.99, "group", "relay_http_request_seconds"), "{{group}}"]),
    ],
  },
  {
    title: "Presence",
    panels: [
      panel("Open connections", "short", ["sum by (instance) (relay_connections)", "{{instance}}"]),
      panel(
        "Connections opened and closed",
        "reqps",
        [`sum(rate(relay_connections_opened_total[${RATE}]))`, "opened"],
        [rateBy("code", "relay_connections_closed_total"), "closed, {{code}}"],
      ),
      panel("Registers and heartbeats", "reqps", [
        rateBy("type", 'relay_envelopes_total{type=~"agent.+", outcome="accepted"}'),
        "{{type}}",
      ]),
      panel("Share of deliveries to agents that are online", "percentunit", [
        `sum(rate(relay_deliveries_total{status="online"}[${RATE}])) / sum(rate(relay_deliveries_total[${RATE}]))`,
        "online",
      ]),
    ],
  },
  {
    title: "Refusals and limits",
    panels: [
      panel("Refusals by code", "reqps", [rateBy("code", "relay_refusals_total"), "{{code}}"]),
      panel("Limits reached", "reqps", [rateBy("limit", "relay_limits_total"), "{{limit}}"]),
      panel("Connections refused", "reqps", [rateBy("code", "relay_connections_refused_total"), "{{code}}"]),
      panel("Keys and issuers refused most", "reqps", [
        `topk(10, ${rateBy("kind, id", "relay_key_refusals_total")})`,
        "{{kind}} {{id}}",
      ]),
      panel("Services that cannot use their keys file", "short", [
        "1 - min by (service, instance) (relay_keys_file_valid)",
        "{{service}} {{instance}}",
      ]),
      panel("Time until the certificate ends", "s", [
        "min by (service) (relay_certificate_end_time_seconds) - time()",
        "{{service}}",
      ]),
    ],
  },
  {
    title: "Redis by link and shard",
    panels: [
      panel("Age of the process window", "s", [
        "time() - max by (deploy) (relay_window_start_time_seconds)",
        "{{deploy}}",
      ]),
      panel(
        "Links that are down",
        "short",
        ["1 - min by (service, link) (relay_redis_up)", "{{service}} {{link}}"],
        ["max by (link, kind) (relay_redis_down)", "{{link}}: {{kind}}"],
      ),
      panel("Calls, p99", "s", [quantileBy(0.99, "link", "relay_redis_call_seconds"), "{{link}}"]),
      panel("Calls without an answer", "reqps", [rateBy("link", "relay_redis_failures_total"), "{{link}}"]),
      panel("Memory used, of maxmemory", "percentunit", ["max by (link) (relay_redis_memory_ratio)", "{{link}}"]),
      explained(
        "Near 256 Redis, or one partition of it, takes no more.",
        panel(
          "Envelopes in an acceptance call",
          "short",
          [quantileBy(0.5, "instance", "relay_acceptance_batch_size"), "p50 {{instance}}"],
          [quantileBy(0.99, "instance", "relay_acceptance_batch_size"), "p99 {{instance}}"],
        ),
      ),
      panel(
        "Partitions without Redis or deliveries",
        "short",
        ["max by (service) (relay_partitions_out_of_reach)", "{{service}}: out of reach"],
        ["max by (instance) (relay_partitions_unheard)", "{{instance}}: unheard"],
      ),
      panel(
        "Replicas of a Redis Cluster",
        "short",
        ["min by (link) (relay_redis_replicas)", "{{link}}"],
        ["sum by (service) (increase(relay_promotions_total[$__range]))", "promotions seen by {{service}}"],
      ),
      panel("Replica behind its primary", "bytes", ["max by (link) (relay_redis_replica_lag_bytes)", "{{link}}"]),
      panel("Clock of Redis ahead", "s", ["max by (link) (relay_redis_clock_offset_seconds)", "{{link}}"]),
    ],
  },
  {
    title: "Event loops",
    panels: [
      panel("Event loop lag, p99", "s", ["nodejs_eventloop_lag_p99_seconds", "{{service}} {{instance}}"]),
      panel("CPU, cores", "short", [
        `sum by (service, instance) (rate(process_cpu_seconds_total[${RATE}]))`,
        "{{service}} {{instance}}",
      ]),
      panel("Resident memory", "bytes", ["process_resident_memory_bytes", "{{service}} {{instance}}"]),
      panel("Time in garbage collections, of a core", "percentunit", [
        `sum by (service, instance) (rate(nodejs_gc_duration_seconds_sum[${RATE}]))`,
        "{{service}} {{instance}}",
      ]),
      panel("Open files, of those allowed", "percentunit", [
        "process_open_fds / process_max_fds",
        "{{service}} {{instance}}",
      ]),
    ],
  },
  {
    title: "Connectors",
    panels: [
      panel(
        "Bytes queued to be sent",
        "bytes",
        ["sum by (instance) (relay_outbox_bytes)", "{{instance}}"],
        ["max(relay_outbox_bytes_max)", "longest queue"],
      ),
      panel("Connections that read too slowly", "short", [
        "sum by (instance) (relay_congested_connections)",
        "{{instance}}",
      ]),
      panel("Deliveries that reached a pod", "reqps", [rateBy("outcome", "relay_deliver_frames_total"), "{{outcome}}"]),
      panel("Pods that hear themselves", "short", ["min by (instance) (relay_channel_ready)", "{{instance}}"]),
      panel(
        "Counts missing from the reports, lines from the audit log",
        "short",
        ["sum by (service) (increase(relay_counts_lost_total[$__range]))", "{{service}}: counts"],
        ["sum by (service) (increase(relay_audit_lines_lost_total[$__range]))", "{{service}}: lines"],
      ),
    ],
  },
];
