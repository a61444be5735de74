import type { Target } from "relay-window/sessions/look-ups.ts";
import { inWindow, type WindowTimes } from "relay-window/window/readiness.ts";
import type { Standing } from "./standing.ts";

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
