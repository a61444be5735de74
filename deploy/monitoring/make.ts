import { readFile } from "node:fs/promises";
import { dashboardOf } from "./dashboard.ts";
import { ROWS } from "./panels.ts";
import { ruleFileOf } from "./rule-file.ts";

/** What of `deploy/monitoring` is made from something else; kept in the repository, since Grafana and Prometheus read files. */

const ALERTS = new URL("../kubernetes/overlays/production/alerts.yaml", import.meta.url);
const inFolder = (path: string) => new URL(path, import.meta.url);

/** Their texts, by where they stand. */
export async function monitoringFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    [inFolder("grafana/agent-relay.json").pathname, `${JSON.stringify(dashboardOf(ROWS), null, 2)}\n`],
    [inFolder("rules.yml").pathname, ruleFileOf(await readFile(ALERTS, "utf8"))],
  ]);
}
