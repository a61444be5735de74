import { LIVENESS_CONTRACT } from "@agent-relay/shared/contract/presence.ts";
import { ECONOMIC_OPERABILITY } from "@agent-relay/shared/contract/reports/common.ts";
import type { ActivationPlan } from "@agent-relay/shared/contract/reports/guides-activation.ts";
import { guideWindow, handoffGate, minimumProofs } from "./figures.ts";
import { refreshPacket } from "./refresh-packet.ts";
import { type GuideView, guideFrame } from "./view.ts";

/** From an empty window to a proof, with commands to copy. Pure. */
export function activationPlan(view: GuideView): ActivationPlan {
  const { activation, bottleneck, nextAction } = view.negotiation;
  return {
    ...guideFrame(view),
    readiness: {
      status: activation,
      current_bottleneck: bottleneck,
      gate: handoffGate(view),
      current_window: guideWindow(view),
    },
    next_action: nextAction,
    connector_recovery: connectorRecovery(view),
    minimum_viable_proof: minimumProofs(view),
    copy_paste_steps: copyPasteSteps(view),
    economic_operability: ECONOMIC_OPERABILITY,
  };
}

function connectorRecovery({ source, links }: GuideView): ActivationPlan["connector_recovery"] {
  const { ok, stale, critical_stale, offline } = source.presence;
  const hints = [
    ok + stale + critical_stale + offline === 0 &&
      "No agent was seen: connect a connector and send a signed agent.register.",
    stale > 0 && "Some agents went stale just now: send a signed agent.heartbeat, at least every 30 seconds.",
    critical_stale > 0 &&
      "Some agents have been silent for over two minutes: reconnect and send a signed agent.register.",
    offline > 0 && "Some agents are offline: restart their connectors.",
  ].filter((hint) => hint !== false);
  return {
    needed: ok === 0,
    hints,
    quickstart: [
      `Check your signing against the test vectors of ${links.signing_manifest}.`,
      `Check one signed envelope with POST ${links.self_test}.`,
      `Connect to ${links.websocket}, wait for hello, and send agent.register within 10 seconds.`,
      "Send agent.heartbeat every 15 seconds.",
      `Check ${links.check_online} again after 90 seconds.`,
    ],
    liveness_contract: LIVENESS_CONTRACT,
  };
}

/** Agent ids and links hold nothing that a shell would read; the API key stays in the environment. */
function copyPasteSteps(view: GuideView): ActivationPlan["copy_paste_steps"] {
  const { links } = view;
  const { endpoint, auth_header, content_type, request_body } = refreshPacket(view);
  const read = (url: string) => `curl -sS '${url}'`;
  return [
    { step: "Read how envelopes are signed.", command: read(links.signing_manifest) },
    { step: "Check that the target is online.", command: read(links.check_online) },
    {
      step: "Request a session; the API key is read from RELAY_API_KEY.",
      command:
        `curl -sS -X POST '${endpoint}' -H 'content-type: ${content_type}' ` +
        `-H "${auth_header}: $RELAY_API_KEY" -d '${JSON.stringify(request_body)}'`,
    },
    { step: "Find the session among the proofs.", command: read(links.session_proof_retention) },
    { step: "Read the handoff gate.", command: read(links.marketplace_handoff_status) },
  ];
}
