import type { PublishedByMinute } from "relay-protocol/contract/reports/common.ts";
import type { TrafficDaily } from "relay-protocol/contract/reports/traffic.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { WindowSnapshot } from "relay-window/counters/snapshot.ts";

const MINUTE_MS = 60_000;

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
    published_to_online_target: publishedToOnlineTarget(snapshot),
    websocket_accepted: totals.websocket_accepted,
    "traffic.self_test.passed": selfTestsPassed(snapshot),
    feedback_total: totals.feedback_total,
  };
}

/** Published envelopes that found their target online. Those of a version that did not count the others are among them. Pure. */
export function publishedToOnlineTarget({ counters }: Pick<WindowSnapshot, "counters">): number {
  return (counters.get("published_envelopes") ?? 0) - (counters.get("published_to_offline_target") ?? 0);
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

/** The monitors of session requests: of both origins, then of the gateway; clients know its last one under two names. Pure. */
export function sessionMonitorsOf(snapshot: WindowSnapshot): TrafficDaily["monitors"] {
  const totals = totalsOf(snapshot);
  const { accepted, toOnlineTarget } = sessionRequests(snapshot);
  const toOffline = totals.simple_session_request_accepted_to_offline_target;
  return {
    session_requests_accepted: accepted,
    session_requests_accepted_to_online_target: toOnlineTarget,
    "traffic.simple_session_request.accepted": totals.simple_session_request_accepted,
    "traffic.simple_session_request.accepted_to_online_target": totals.simple_session_request_accepted_to_online_target,
    "traffic.simple_session_request.accepted_to_offline_target": toOffline,
    simple_session_request_accepted_to_offline_target: toOffline,
  };
}

/** Published envelopes but session requests, which have a stage of their own; and those of them that found their target online. Pure. */
export function messages(snapshot: WindowSnapshot) {
  const requests = sessionRequests(snapshot);
  return {
    published: totalsOf(snapshot).published_envelopes - requests.accepted,
    toOnlineTarget: Math.max(0, publishedToOnlineTarget(snapshot) - requests.toOnlineTarget),
  };
}

/** The last 60 minutes, oldest first, zeros included. Pure. */
export function publishedByMinute({ minutes, now }: Pick<WindowSnapshot, "minutes" | "now">): PublishedByMinute {
  const first = Math.floor(now / MINUTE_MS) - WINDOW_LIMITS.minutes + 1;
  return Array.from({ length: WINDOW_LIMITS.minutes }, (_, index) => ({
    minute_started_at: (first + index) * MINUTE_MS,
    count: minutes.get(String(first + index)) ?? 0,
  }));
}

function selfTestsPassed({ traffic }: WindowSnapshot): number {
  return traffic.get("self_test_passed") ?? 0;
}
