/** One row of the table of alerts in docs/operations.md, as Prometheus writes it. */
export interface DocumentedAlert {
  readonly expr: string;
  /** Undefined for one that fires at once. */
  readonly for: string | undefined;
  readonly description: string;
}

/** The table under "Alerts". @param document docs/operations.md. */
export function alertsOf(document: string): DocumentedAlert[] {
  const section = document.split("\n## Alerts\n")[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) => {
    const cells = row.slice(1, -1).split(/(?<!\\)\|/);
    const [when = "", wait = "", means = ""] = cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
    return { expr: when.replace(/^`(.*)`$/, "$1"), for: durationOf(wait), description: withoutLinks(means) };
  });
}

/** "5 min" is 5m; "–" is none. */
function durationOf(text: string): string | undefined {
  const [, count, unit] = /^([0-9]+) (s|min)$/.exec(text) ?? [];
  return count && `${count}${unit === "min" ? "m" : "s"}`;
}

/** A link within the document says where it leads: an alert is read elsewhere. */
function withoutLinks(markdown: string): string {
  return markdown.replace(/\[([^\]]+)\]\((#[\w-]+)\)/g, "$1 (docs/operations.md$2)");
}
