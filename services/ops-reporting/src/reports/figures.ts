import type {
  Completeness,
  CurrentWindow,
  PublishedByMinute,
  SessionCounts,
} from "relay-protocol/contract/reports/common.ts";
import type { TrafficDaily } from "relay-protocol/contract/reports/traffic.ts";
import {
  ACTIONABLE_CATEGORIES,
  type ActionableCategory,
  BLOCKER_CATEGORIES,
  type BlockerCategory,
  CHECK_CATEGORIES,
} from "relay-protocol/contract/requests.ts";
import { SESSION_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Counts, WindowSnapshot } from "relay-window/counters/snapshot.ts";
import type { ReportSource } from "../window-reader.ts";

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

/** Session requests and retained proofs of the window. Pure. */
export function sessionCounts(snapshot: WindowSnapshot): SessionCounts {
  const totals = totalsOf(snapshot);
  return {
    simple_session_request_accepted: totals.simple_session_request_accepted,
    accepted_to_online_target: totals.simple_session_request_accepted_to_online_target,
    accepted_to_offline_target: totals.simple_session_request_accepted_to_offline_target,
    retained_process_window_proofs: snapshot.proofs.length,
    retained_durable_proofs: 0,
  };
}

/** The window itself. Pure. */
export function currentWindow(snapshot: WindowSnapshot): CurrentWindow {
  const { now, windowStartedAt } = snapshot;
  return {
    scope: "process_window",
    window_started_at: windowStartedAt,
    window_started_at_iso: new Date(windowStartedAt).toISOString(),
    window_age_ms: Math.max(0, now - windowStartedAt),
    retention_limit: SESSION_LIMITS.retainedProofs,
    ...sessionCounts(snapshot),
  };
}

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

/** Readers of the feedback counts, whose names are `category:docs`, `sentiment:blocked`, `surface:checkOnline`, `total`. Pure. */

function categoryCount(feedback: Counts, category: string): number {
  return feedback.get(`category:${category}`) ?? 0;
}

/** Counts by label of one kind; labels without feedback are left out. */
export function countsByLabel(feedback: Counts, kind: "category" | "sentiment" | "surface"): Record<string, number> {
  const prefix = `${kind}:`;
  const ofKind = [...feedback].filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(ofKind.map(([name, count]) => [name.slice(prefix.length), count]));
}

/** The categories that have feedback, the largest count first, in the given order where equal. */
export function mostCounted<Category extends string>(
  feedback: Counts,
  categories: readonly Category[],
): { readonly category: Category; readonly count: number }[] {
  return categories
    .map((category) => ({ category, count: categoryCount(feedback, category) }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count);
}

/** The actionable category with the largest count; null when none has feedback. */
export function leadingCategory(feedback: Counts): ActionableCategory | null {
  return mostCounted(feedback, ACTIONABLE_CATEGORIES)[0]?.category ?? null;
}

/** Feedback that was sent only to check that feedback works. */
export function checksTotal(feedback: Counts): number {
  return CHECK_CATEGORIES.reduce((sum, category) => sum + categoryCount(feedback, category), 0);
}

/** Counts of the categories that name a blocker between connector and session, zeros included. */
export function blockerCounts(feedback: Counts): Record<BlockerCategory, number> {
  const counts = BLOCKER_CATEGORIES.map((category) => [category, categoryCount(feedback, category)]);
  return Object.fromEntries(counts) as Record<BlockerCategory, number>;
}

/** A number of things: `1 agent`, `2 agents`. */
export function quantity(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** Epoch ms as ISO 8601. */
export function isoOrNull(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}

/** A duration for people to read: `1 ms`, `59 s`, `12 min`, `2 h 59 min`. Rounded down. */
export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
