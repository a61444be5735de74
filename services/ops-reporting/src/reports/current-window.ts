import type { CurrentWindow, SessionCounts } from "relay-protocol/contract/reports/common.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { WindowSnapshot } from "relay-window/counters/snapshot.ts";
import { totalsOf } from "./totals.ts";

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
