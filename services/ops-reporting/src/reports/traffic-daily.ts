import { DURABLE_WINDOW, PROOF_PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { RETENTION_STATUS, type TrafficDaily } from "relay-protocol/contract/reports/traffic.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { REPORT_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Counts } from "relay-window/counters/snapshot.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf, funnelStages, largestDropoff, operatorQuickScan } from "./activation.ts";
import { completenessOf, currentWindow, monitorsOf, publishedByMinute, quantity, totalsOf } from "./figures.ts";
import { journeySummary } from "./session-journeys.ts";
import { PROOF_BOUNDARIES, proofFreshness, proofGate, recentSessionProofs } from "./session-proofs.ts";

/** Traffic of the process window. Pure. */
export function trafficDaily(source: ReportSource<"presence" | "journeys">, settings: ReportSettings): TrafficDaily {
  const totals = totalsOf(source);
  const { total_events, unique_sessions } = totals;
  const headline = `${quantity(total_events, "event")}, ${quantity(unique_sessions, "anonymous visitor")} in this window.`;
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.trafficDaily.path,
    scope: "process_window",
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    ...completenessOf(source),
    caveat:
      `Counts of this process window, which starts anew with a deploy or the loss of Redis; at most ${REPORT_LIMITS.maxBehindMs} ms behind. ` +
      "total_events is the sum of surface_views, onboarding_checks, traffic.self_test.passed, websocket_accepted, " +
      "published_envelopes, simple_send_accepted, simple_session_request_accepted and feedback_total: one request can " +
      "be several events. unique_sessions is an estimate, about 1 % off.",
    totals,
    top_surfaces: topSurfaces(source.surfaces),
    funnel: funnelSummary(source, settings),
    session_journeys: {
      ...journeySummary(source),
      url: settings.baseUrl + SURFACES.sessionJourneys.path,
    },
    session_proof_retention: retentionSummary(source, settings),
    current_window: windowWithMinutes(source),
    durable_window: DURABLE_WINDOW,
    recent_session_proofs: recentSessionProofs(source, settings),
    proof_boundaries: PROOF_BOUNDARIES,
    monitors: monitorsOf(source),
    privacy: PROOF_PRIVACY[settings.proofIdentities],
    operator_quick_scan: operatorQuickScan(source, settings, headline),
  };
}

function windowWithMinutes(source: ReportSource): TrafficDaily["current_window"] {
  const byMinute = publishedByMinute(source);
  const former = byMinute.flatMap(({ minute_started_at: minute_start, count }) =>
    count === 0 ? [] : [{ minute_start, count }],
  );
  return { ...currentWindow(source), published_envelopes_by_minute: byMinute, accepted_by_minute: former };
}

/** Views by operation id, most viewed first. Names that are not in the catalogue (of an older deploy) are left out. */
function topSurfaces(surfaces: Counts): TrafficDaily["top_surfaces"] {
  return [...surfaces]
    .filter(([name]) => Object.hasOwn(SURFACES, name))
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

function funnelSummary(source: ReportSource<"presence">, settings: ReportSettings): TrafficDaily["funnel"] {
  return {
    stages: funnelStages(source).map(({ stage, status, count }) => ({ stage, status, count })),
    largest_current_dropoff: largestDropoff(source),
    next_action: activationOf(source, settings).nextAction,
    url: settings.baseUrl + SURFACES.activationFunnel.path,
  };
}

function retentionSummary(source: ReportSource, settings: ReportSettings): TrafficDaily["session_proof_retention"] {
  const { baseUrl, proofFreshnessMs } = settings;
  return {
    status: RETENTION_STATUS,
    retained_process_window_proofs: source.proofs.length,
    retained_durable_proofs: 0,
    ...proofGate(proofFreshness(source, proofFreshnessMs), proofFreshnessMs),
    url: baseUrl + SURFACES.sessionProofRetention.path,
  };
}
