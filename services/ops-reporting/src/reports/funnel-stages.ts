import type { Dropoff, FunnelStage, StageName } from "relay-protocol/contract/reports/traffic.ts";
import type { ReportSource } from "../window-reader.ts";
import { checksTotal } from "./feedback-counts.ts";
import { quantity } from "./format.ts";
import { messages, sessionRequests, totalsOf } from "./totals.ts";

interface Counted {
  readonly stage: StageName;
  readonly count: number;
  readonly evidence: string;
}

/** The five stages, in order. Pure. */
export function funnelStages(source: ReportSource<"presence">): FunnelStage[] {
  const stages = countedStages(source);
  return stages.map((current, index) => {
    const previous = stages[index - 1];
    return {
      stage: current.stage,
      status: statusOf(current, source),
      count: current.count,
      evidence: current.evidence,
      previous_stage: previous?.stage ?? null,
      dropoff_from_previous: previous === undefined ? null : lost(previous, current),
      conversion_rate_from_previous: previous === undefined ? null : rate(current.count, previous.count),
    };
  });
}

/** The loss between each stage and the next. Pure. */
export function dropoffs(source: ReportSource<"presence">): Dropoff[] {
  const stages = countedStages(source);
  return stages.slice(1).map((current, index) => {
    const previous = stages[index] as Counted;
    return {
      from: previous.stage,
      to: current.stage,
      previous_count: previous.count,
      current_count: current.count,
      dropoff_count: lost(previous, current),
      conversion_rate: rate(current.count, previous.count),
      status: dropoffStatus(previous, current),
    };
  });
}

/** The largest dropoff, the earliest among equals; null when nothing is lost. Pure. */
export function largestDropoff(source: ReportSource<"presence">): Dropoff | null {
  const losses = dropoffs(source).filter(({ dropoff_count }) => dropoff_count > 0);
  return losses.toSorted((a, b) => b.dropoff_count - a.dropoff_count)[0] ?? null;
}

/** The share of `part` in `whole`, at most 1; null when `whole` is 0. Pure. */
export function rate(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.min(1, part / whole);
}

/** The first two stages count visitors and agents, the others what these did. */
function countedStages(source: ReportSource<"presence">): Counted[] {
  const { presence } = source;
  const totals = totalsOf(source);
  const { ok: online, stale, critical_stale, offline } = presence;
  const checks = checksTotal(source.feedback);
  const { accepted: requests, byGateway, overWebsockets } = sessionRequests(source);
  return [
    {
      stage: "discovery",
      count: totals.unique_sessions,
      evidence: `Anonymous visitors of HTTP surfaces, an estimate; ${quantity(totals.surface_views, "view")} in total.`,
    },
    {
      stage: "connector_onboarding",
      count: online + stale + critical_stale + offline,
      evidence: `Agents seen within a day in this window: ${online} online, ${stale + critical_stale} stale, ${offline} offline.`,
    },
    {
      stage: "message_delivery",
      count: messages(source).published,
      evidence: `Published envelopes without session requests: ${totals.published_envelopes} - ${requests}.`,
    },
    {
      stage: "session_negotiation",
      count: requests,
      evidence: `Accepted session requests: ${byGateway} through the gateway, ${overWebsockets} over websockets.`,
    },
    {
      stage: "feedback",
      count: totals.feedback_total - checks,
      evidence: `Feedback without smoke and deploy checks: ${totals.feedback_total} - ${checks}.`,
    },
  ];
}

function statusOf({ stage, count }: Counted, { presence }: ReportSource<"presence">): FunnelStage["status"] {
  if (stage === "connector_onboarding" && presence.ok > 0) return "online";
  return count > 0 ? "active" : "idle";
}

function lost(previous: Counted, current: Counted): number {
  return Math.max(0, previous.count - current.count);
}

function dropoffStatus(previous: Counted, current: Counted): Dropoff["status"] {
  if (previous.count === 0) return "no_traffic";
  if (current.count === 0) return "blocked";
  return current.count < previous.count ? "dropoff" : "no_dropoff";
}
