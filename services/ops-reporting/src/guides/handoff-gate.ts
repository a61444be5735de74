import {
  GATE_GO,
  GATE_NO_GO,
  type GuideWindow,
  type HandoffGate,
  type MinimumProof,
} from "relay-protocol/contract/reports/guides.ts";
import { canDeliverRealtime } from "relay-window/presence/presence.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { inWindow, type WindowTimes } from "relay-window/window/readiness.ts";
import { currentWindow, isoOrNull } from "../reports/figures.ts";
import { proofGate } from "../reports/session-proofs.ts";
import type { GuideContext } from "./guide.ts";
import type { Standing } from "./standing.ts";

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

/** Why the gate says what it says, in one sentence. Pure. Source: docs/reports.md#one-target. */
export function reasonOf(standing: Standing, times: WindowTimes): string {
  const { target, decision } = standing;
  if (target === null) {
    return `${OF_WINDOW[standing.freshness.state]}${whose(standing)}${nobodyOnline(standing, times)}.`;
  }
  const reason = decision === null ? ofTarget(standing) : ofSession(standing, target);
  return `${reason}${away(standing, target, times)}.`;
}

const OF_WINDOW = {
  none: "This window has no proof",
  stale_refresh_due: "The last proof of this window is too old",
  fresh: "The last proof of this window is fresh",
};

const OF_TARGET = {
  none: "The target has no proof",
  stale_refresh_due: "The target's last proof is too old",
  fresh: "The target's last proof is fresh",
};

function ofTarget(standing: Standing): string {
  return `${OF_TARGET[standing.freshness.state]}${whose(standing)}`;
}

function whose(standing: Standing): string {
  if (standing.freshness.state !== "fresh") return "";
  const requester = standing.isWithinPrincipal ? ", between agents of one key or issuer" : ", whoever requested it";
  return `${requester}${notPermitted(standing)}`;
}

/** What the asker has to name before a fresh proof permits anything. */
function notPermitted({ isPermitted, target }: Standing): string {
  if (isPermitted) return "";
  return target === null
    ? "; not permitted with session_id but no target_agent_id: add target_agent_id"
    : "; not permitted without a session of yours that the target approved: add session_id";
}

function ofSession({ decision, freshness }: Standing, { session }: Target): string {
  if (decision === "unknown" || session === null) return "The target has no such session of yours";
  if (decision === "rejected") return "The target rejected this session";
  if (decision === "expired") {
    return session.isDisplaced
      ? "Newer sessions took this one's place"
      : "The time of this session ran out before the target decided";
  }
  if (freshness.state === "none") return "The target was away when this session was requested";
  if (freshness.state === "stale_refresh_due") return "The proof of this session is too old";
  return decision === "approved"
    ? "The target approved this session, and its proof is fresh"
    : "The target has the request of this session, and has not decided";
}

function nobodyOnline({ allowed }: Standing, times: WindowTimes): string {
  if (allowed === "connect_target_connector") return `, and no agent was seen ${inWindow(times)}`;
  return allowed === "bring_target_connector_online" ? ", and no agent is online" : "";
}

/** Where the way waits for its connector. */
function away({ allowed }: Standing, { presence }: Target, times: WindowTimes): string {
  if (allowed !== "connect_target_connector" && allowed !== "bring_target_connector_online") return "";
  if (presence.status === "not_seen") return `, and was not seen ${inWindow(times)}`;
  return presence.isCongested ? ", and reads too slowly" : ", and is not online";
}
