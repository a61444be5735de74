import type { Completeness } from "relay-protocol/contract/reports/common.ts";
import type { ReportSource } from "../window-reader.ts";

/** Whether a report has all that it should, and what it may lack. Pure. Source: docs/reports.md#complete. */
export function completenessOf(
  source: ReportSource & Partial<Pick<ReportSource<"presence">, "presence">>,
): Completeness {
  const { windowStartedAt, partitions, lostSince, presence } = source;
  const missing = [...new Set([...source.missing, ...(presence?.missing ?? [])])].sort((a, b) => a - b);
  const mayLack = [...lostSince.keys()].filter((place) => place !== "control").sort((a, b) => a - b);
  const since = [...lostSince.values(), ...(missing.length > 0 ? [windowStartedAt] : [])];
  return {
    complete: since.length === 0,
    may_lack_since: since.length === 0 ? null : Math.min(...since),
    partitions: { total: partitions, missing, may_lack: mayLack, control_may_lack: lostSince.has("control") },
  };
}
