import { readFile, writeFile } from "node:fs/promises";
import { dashboardOf, ROWS } from "./dashboard.ts";

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

const HEAD =
  "# The alerts of docs/operations.md, from deploy/kubernetes/overlays/production/alerts.yaml: npm run monitoring.\n";

/**
 * The rules of a PrometheusRule as the rule file of a Prometheus that no operator runs. Pure.
 * @param manifest YAML with `spec` at its end, indented by two spaces. @throws {Error} when it is another one.
 */
function ruleFileOf(manifest: string): string {
  const [, spec] = manifest.split(/^spec:\n/m);
  const lines = spec?.split("\n") ?? [];
  if (lines.length === 0 || lines.some((line) => line !== "" && !line.startsWith("  "))) {
    throw new Error("The manifest does not end with a spec that is indented by two spaces.");
  }
  return HEAD + lines.map((line) => line.slice(2)).join("\n");
}

/** `npm run monitoring`: writes both again, after a change of a panel or of an alert. */
if (import.meta.main) for (const [file, text] of await monitoringFiles()) await writeFile(file, text);
