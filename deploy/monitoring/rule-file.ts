const HEAD =
  "# The alerts of docs/operations.md, from deploy/kubernetes/overlays/production/alerts.yaml: npm run monitoring.\n";

/**
 * The rules of a PrometheusRule as the rule file of a Prometheus that no operator runs. Pure.
 * @param manifest YAML with `spec` at its end, indented by two spaces. @throws {Error} when it is another one.
 */
export function ruleFileOf(manifest: string): string {
  const [, spec] = manifest.split(/^spec:\n/m);
  const lines = spec?.split("\n") ?? [];
  if (lines.length === 0 || lines.some((line) => line !== "" && !line.startsWith("  "))) {
    throw new Error("The manifest does not end with a spec that is indented by two spaces.");
  }
  return HEAD + lines.map((line) => line.slice(2)).join("\n");
}
