import { median } from "../../bench/statistics.ts";
import type { Outcome } from "./outcome.ts";

const HEAD = [
  "fault",
  "times injected",
  "sent",
  "acked",
  "promised",
  "delivered",
  "refused",
  "violations",
  "forgotten",
  "unavailable median, ms",
  "max, ms",
  "recovery median, ms",
  "max, ms",
];
const ABOUT =
  "Envelopes are counted once, refusals each time; promised are those that were acked as deliverable in realtime, forgotten those that were taken for new once more. Unavailable: from the first refusal of what concerns an agent that the fault touched until it is served again. Recovery: from the end of the fault until every agent that it touched " +
  "has sent and received again, both acknowledged and delivered; for the gateway, until callers are served again.";

/** A line for each fault; one that has no outcome says so. */
export function tableOf(faults: readonly string[], outcomes: readonly Outcome[]): string {
  const all = [HEAD, ...faults.map((fault) => lineOf(fault, outcomes))];
  const widths = HEAD.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0)));
  const text = all.map((line) =>
    line.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join("  "),
  );
  return [...text, "", ABOUT, ""].join("\n");
}

/** The same as Markdown. */
export function markdownOf(faults: readonly string[], outcomes: readonly Outcome[]): string {
  const all = [HEAD, HEAD.map(() => "---"), ...faults.map((fault) => lineOf(fault, outcomes))];
  return all.map((line) => `| ${line.join(" | ")} |`).join("\n");
}

/** Faults without an outcome: the table is not complete. */
export function missingIn(faults: readonly string[], outcomes: readonly Outcome[]): string[] {
  return faults.filter((name) => !outcomes.some(({ fault }) => fault === name));
}

function lineOf(name: string, outcomes: readonly Outcome[]): string[] {
  const outcome = outcomes.find(({ fault }) => fault === name);
  if (outcome === undefined) return [name, "did not come through"];
  const { times, sent, acked, promised, delivered, refused, violations, forgotten, unavailable, recoveries } = outcome;
  const counts = [times, sent, acked, promised, delivered, refused, violations.length, forgotten].map(grouped);
  return [name, ...counts, ...spans(unavailable), ...spans(recoveries)];
}

/** Median and longest. */
function spans(ms: readonly number[]): string[] {
  return ms.length === 0 ? ["–", "–"] : [median(ms), Math.max(...ms)].map((span) => span.toFixed(0));
}

function grouped(n: number): string {
  return n.toLocaleString("en");
}
