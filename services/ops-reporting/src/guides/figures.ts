import {
  GATE_GO,
  GATE_NO_GO,
  type GuideWindow,
  type HandoffGate,
  type MinimumProof,
} from "@agent-relay/shared/contract/reports/guides.ts";
import { currentWindow } from "../reports/current-window.ts";
import { proofGate } from "../reports/proof-freshness.ts";
import type { GuideView } from "./view.ts";

/** Pure: the parts of the guides that are figures. */

export function guideWindow({ source }: GuideView): GuideWindow {
  const { presence, counters } = source;
  return {
    ...currentWindow(source),
    online_agents: presence.ok,
    stale_agents: presence.stale + presence.critical_stale,
    offline_agents: presence.offline,
    websocket_accepted: counters.get("websocket_accepted") ?? 0,
  };
}

/** Source: the contract, "Session proof freshness". */
export function handoffGate({ negotiation, nextStep, settings }: GuideView): HandoffGate {
  const { freshness } = negotiation;
  return {
    status: freshness.state === "fresh" ? GATE_GO : GATE_NO_GO,
    allowed_next_step: nextStep.step,
    accepted_online_target: freshness.state !== "none",
    ...proofGate(freshness, settings.proofFreshnessMs),
  };
}

/** What must hold before a handoff, in the order in which it is reached. */
export function minimumProofs(view: GuideView): MinimumProof[] {
  const { online_agents, websocket_accepted } = guideWindow(view);
  const { state, acceptedAt, msUntilRefreshDue } = view.negotiation.freshness;
  return [
    { proof: "connector_online", met: online_agents > 0, metric: "online_agents", value: online_agents },
    {
      proof: "signed_envelope_accepted",
      met: websocket_accepted > 0,
      metric: "websocket_accepted",
      value: websocket_accepted,
    },
    {
      proof: "session_request_accepted_to_online_target",
      met: state !== "none",
      metric: "latest_online_target_proof_at",
      value: acceptedAt,
    },
    { proof: "proof_fresh", met: state === "fresh", metric: "ms_until_refresh_due", value: msUntilRefreshDue },
  ];
}
