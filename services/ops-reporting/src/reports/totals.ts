import type { TrafficDaily } from "protocol/contract/reports/traffic-daily.ts";
import type { WindowSnapshot } from "window/snapshot.ts";

export type Totals = TrafficDaily["totals"];

/** The counters and their sum. Pure. Source: docs/protocol.md#counters. */
export function totalsOf(snapshot: WindowSnapshot): Totals {
  const { counters, traffic, feedback, visitors } = snapshot;
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
    // The two counts by the state of the target, below, split simple_session_request_accepted and are not added again.
    total_events: Object.values(counts).reduce((sum, count) => sum + count, selfTestsPassed(snapshot)),
    unique_sessions: visitors,
    ...counts,
    simple_session_request_accepted_to_online_target: accepted("simple_session_request_accepted_to_online_target"),
    simple_session_request_accepted_to_offline_target: accepted("simple_session_request_accepted_to_offline_target"),
  };
}

/** Every counter under its full name. Pure. Source: docs/protocol.md#counters. */
export function monitorsOf(snapshot: WindowSnapshot): TrafficDaily["monitors"] {
  const totals = totalsOf(snapshot);
  return {
    "traffic.simple_send.accepted": totals.simple_send_accepted,
    ...sessionMonitorsOf(snapshot),
    published_envelopes: totals.published_envelopes,
    websocket_accepted: totals.websocket_accepted,
    "traffic.self_test.passed": selfTestsPassed(snapshot),
    feedback_total: totals.feedback_total,
  };
}

/** Session requests of both origins; the counters named `simple_…` know those of the gateway alone. Pure. */
export function sessionRequests({ counters }: Pick<WindowSnapshot, "counters">) {
  const count = (name: string) => counters.get(name) ?? 0;
  const accepted = count("session_requests");
  return {
    accepted,
    byGateway: count("simple_session_request_accepted"),
    overWebsockets: accepted - count("simple_session_request_accepted"),
    toOnlineTarget: count("session_requests_to_online_target"),
  };
}

/** The monitors of session requests; clients know the last one under two names. Pure. */
export function sessionMonitorsOf(snapshot: WindowSnapshot): TrafficDaily["monitors"] {
  const totals = totalsOf(snapshot);
  const toOffline = totals.simple_session_request_accepted_to_offline_target;
  return {
    "traffic.simple_session_request.accepted": totals.simple_session_request_accepted,
    "traffic.simple_session_request.accepted_to_online_target": totals.simple_session_request_accepted_to_online_target,
    "traffic.simple_session_request.accepted_to_offline_target": toOffline,
    simple_session_request_accepted_to_offline_target: toOffline,
  };
}

function selfTestsPassed({ traffic }: WindowSnapshot): number {
  return traffic.get("self_test_passed") ?? 0;
}
