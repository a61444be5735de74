import { PRIVACY, type TrafficDaily } from "@agent-relay/shared/contract/reports.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { Counts, WindowSnapshot } from "@agent-relay/shared/window/snapshot.ts";
import { PROOF_BOUNDARIES, recentSessionProofs } from "./session-proofs.ts";

type Totals = TrafficDaily["totals"];

/**
 * Traffic of the process window. Pure.
 * @param freshnessMs how long a session proof stays fresh.
 */
export function trafficDaily(snapshot: WindowSnapshot, freshnessMs: number): TrafficDaily {
  const selfTestsPassed = snapshot.traffic.get("self_test_passed") ?? 0;
  const totals = totalsOf(snapshot, selfTestsPassed);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.trafficDaily.path,
    scope: "process_window",
    window_started_at: snapshot.windowStartedAt,
    generated_at: snapshot.now,
    caveat:
      "Counts of this process window, which a deploy or the loss of Redis begins anew; at most 500 ms behind. " +
      "total_events is the sum of surface_views, onboarding_checks, traffic.self_test.passed, websocket_accepted, " +
      "published_envelopes, simple_send_accepted, simple_session_request_accepted and feedback_total: one request can " +
      "be several events. unique_sessions is an estimate, about 1 % off.",
    totals,
    top_surfaces: topSurfaces(snapshot.surfaces),
    durable_window: { durable_session_proof_store_configured: false, window_started_at: null, retained_proofs: 0 },
    recent_session_proofs: recentSessionProofs(snapshot, freshnessMs),
    proof_boundaries: PROOF_BOUNDARIES,
    monitors: monitorsOf(totals, selfTestsPassed),
    privacy: PRIVACY,
  };
}

function totalsOf({ counters, traffic, feedback, visitors }: WindowSnapshot, selfTestsPassed: number): Totals {
  const accepted = (name: string) => counters.get(name) ?? 0;
  const counts = {
    surface_views: traffic.get("surface_views") ?? 0,
    onboarding_checks: traffic.get("onboarding_checks") ?? 0,
    websocket_accepted: accepted("websocket_accepted"),
    published_envelopes: accepted("published_envelopes"),
    simple_send_accepted: accepted("simple_send_accepted"),
    simple_session_request_accepted: accepted("simple_session_request_accepted"),
    feedback_total: feedback.get("total") ?? 0,
  };
  return {
    // Every counter's events. The split by target's state below is of events that are in already.
    total_events: Object.values(counts).reduce((sum, count) => sum + count, selfTestsPassed),
    unique_sessions: visitors,
    ...counts,
    simple_session_request_accepted_to_online_target: accepted("simple_session_request_accepted_to_online_target"),
    simple_session_request_accepted_to_offline_target: accepted("simple_session_request_accepted_to_offline_target"),
  };
}

/** Operation ids of the catalogue, most viewed first; so there are never more of them than surfaces. */
function topSurfaces(surfaces: Counts): TrafficDaily["top_surfaces"] {
  return [...surfaces]
    .filter(([name]) => Object.hasOwn(SURFACES, name))
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

/** Source: the contract, "Events", which knows the last of the session counters by two names. */
function monitorsOf(totals: Totals, selfTestsPassed: number): TrafficDaily["monitors"] {
  const toOffline = totals.simple_session_request_accepted_to_offline_target;
  return {
    "traffic.simple_send.accepted": totals.simple_send_accepted,
    "traffic.simple_session_request.accepted": totals.simple_session_request_accepted,
    "traffic.simple_session_request.accepted_to_online_target": totals.simple_session_request_accepted_to_online_target,
    "traffic.simple_session_request.accepted_to_offline_target": toOffline,
    simple_session_request_accepted_to_offline_target: toOffline,
    published_envelopes: totals.published_envelopes,
    websocket_accepted: totals.websocket_accepted,
    "traffic.self_test.passed": selfTestsPassed,
    feedback_total: totals.feedback_total,
  };
}
