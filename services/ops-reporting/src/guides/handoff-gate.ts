import {
  GATE_GO,
  GATE_NO_GO,
  type GuideWindow,
  type HandoffGate,
  type MinimumProof,
} from "relay-protocol/contract/reports/guides.ts";
import { canDeliverRealtime } from "relay-window/presence/presence.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { currentWindow } from "../reports/current-window.ts";
import { isoOrNull } from "../reports/format.ts";
import { proofGate } from "../reports/proof-freshness.ts";
import { reasonOf } from "./gate-reason.ts";
import type { GuideContext } from "./guide-context.ts";

/** The window; its counts only where no target is asked for, since they are not the target's. Pure. */
export function guideWindow({ source, standing }: GuideContext): GuideWindow {
  const { presence, counters } = source;
  const window = currentWindow(source);
  if (standing.target !== null) {
    const { scope, window_started_at, window_started_at_iso, window_age_ms, retention_limit } = window;
    return { scope, window_started_at, window_started_at_iso, window_age_ms, retention_limit };
  }
  return {
    ...window,
    online_agents: presence.ok,
    stale_agents: presence.stale + presence.critical_stale,
    offline_agents: presence.offline,
    websocket_accepted: counters.get("websocket_accepted") ?? 0,
  };
}

/** Whether a handoff is permitted now: to the target, else to any. Pure. Source: docs/reports.md#freshness. */
export function handoffGate(context: GuideContext): HandoffGate {
  const { standing, settings } = context;
  const { freshness, target } = standing;
  return {
    status: freshness.state === "fresh" ? GATE_GO : GATE_NO_GO,
    allowed_next_step: standing.allowed,
    reason: reasonOf(standing, context.source),
    scope: target === null ? "process_window" : "target",
    accepted_online_target: freshness.state !== "none",
    ...proofGate(freshness, settings.proofFreshnessMs),
    important_handoff_permitted_from_process_window: standing.isPermitted,
    target_presence: target === null ? null : presenceOf(target),
    last_request_accepted_at_iso: isoOrNull(target?.lastRequestAt ?? null),
    proof_requester_is_you: standing.isOwnProof,
    target_decision: standing.decision,
  };
}

function presenceOf({ presence }: Target): HandoffGate["target_presence"] {
  const { status, lastSeen, isCongested } = presence;
  return {
    status,
    can_deliver_realtime: canDeliverRealtime(presence),
    ...(isCongested ? { reason: "congested" } : {}),
    last_seen_iso: isoOrNull(lastSeen),
  };
}

/** What must be proven before a handoff, in the order in which it is reached. Pure. */
export function minimumProofs(context: GuideContext): MinimumProof[] {
  const { state, acceptedAt, msUntilRefreshDue } = context.standing.freshness;
  return [
    ...seenProofs(context),
    {
      proof: "session_request_accepted_to_online_target",
      met: state !== "none",
      metric: "latest_online_target_proof_at",
      value: acceptedAt,
    },
    { proof: "proof_fresh", met: state === "fresh", metric: "ms_until_refresh_due", value: msUntilRefreshDue },
  ];
}

/** That somebody is there: the target, else anybody. Whoever was seen has had an envelope accepted. */
function seenProofs(context: GuideContext): MinimumProof[] {
  const { target } = context.standing;
  if (target !== null) {
    const { status, staleMs, lastSeen } = target.presence;
    return [
      {
        proof: "connector_online",
        met: canDeliverRealtime(target.presence),
        metric: "target_stale_ms",
        value: staleMs,
      },
      { proof: "signed_envelope_accepted", met: status !== "not_seen", metric: "target_last_seen_at", value: lastSeen },
    ];
  }
  const { online_agents = 0, websocket_accepted = 0 } = guideWindow(context);
  return [
    { proof: "connector_online", met: online_agents > 0, metric: "online_agents", value: online_agents },
    {
      proof: "signed_envelope_accepted",
      met: websocket_accepted > 0,
      metric: "websocket_accepted",
      value: websocket_accepted,
    },
  ];
}
