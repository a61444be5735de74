import type { Panel, Row } from "./panels.ts";

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
