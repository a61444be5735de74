import { LIVENESS_CONTRACT } from "relay-protocol/contract/presence.ts";
import { ECONOMIC_OPERABILITY } from "relay-protocol/contract/reports/common.ts";
import type { ActivationPlan, AllowedNextStep } from "relay-protocol/contract/reports/guides.ts";
import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import type { PresenceCounts } from "relay-window/presence/presence.ts";
import { inWindow } from "relay-window/window/readiness.ts";
import { commonFields, type GuideContext, guideUrl, isReadyToRun, sessionRequest, withoutSession } from "./guide.ts";
import { guideWindow, handoffGate, minimumProofs } from "./handoff-gate.ts";

/** How to get from an empty window to a session proof, with commands to copy. Pure. */
export function activationPlan(context: GuideContext): ActivationPlan {
  const { status, bottleneck } = context.standing;
  return {
    ...commonFields(context),
    readiness: {
      status,
      current_bottleneck: bottleneck,
      gate: handoffGate(context),
      current_window: guideWindow(context),
    },
    connector_recovery: connectorRecovery(context),
    minimum_viable_proof: minimumProofs(context),
    copy_paste_steps: copyPasteSteps(context),
    economic_operability: ECONOMIC_OPERABILITY,
  };
}

const WAITS_FOR_CONNECTOR: ReadonlySet<AllowedNextStep> = new Set([
  "connect_target_connector",
  "bring_target_connector_online",
]);

/** For whoever keeps the connectors: the target's, else all of the window. */
function connectorRecovery(context: GuideContext): ActivationPlan["connector_recovery"] {
  const { settings, links, standing, source } = context;
  const { ok, stale, critical_stale, offline } = countsOf(context);
  const hints = [
    ok + stale + critical_stale + offline === 0 &&
      `Not seen ${inWindow(source)}: its owner connects a connector and sends a signed agent.register.`,
    stale > 0 && "Recently stale: its owner sends a signed agent.heartbeat at least every 30 seconds.",
    critical_stale > 0 && "Silent for over two minutes: its owner reconnects and sends a signed agent.register.",
    offline > 0 && "Offline: its owner restarts the connector.",
    standing.target?.presence.isCongested === true && "Congested: its owner reads what waits on the connection.",
  ].filter((hint) => hint !== false);
  return {
    needed: WAITS_FOR_CONNECTOR.has(standing.allowed),
    hints,
    quickstart: [
      `Check your signing against the test vectors of ${links.signing_manifest}.`,
      `Check one signed envelope with POST ${settings.baseUrl + SURFACES.selfTest.path}.`,
      `Connect to ${settings.wsUrl + WEBSOCKET_PATH}, wait for hello, and send agent.register within 10 seconds.`,
      "Send agent.heartbeat every 15 seconds.",
      "Check that you are still online after 90 seconds.",
    ],
    liveness_contract: LIVENESS_CONTRACT,
  };
}

function countsOf({ source, standing }: GuideContext): PresenceCounts {
  if (standing.target === null) return source.presence;
  const none = { ok: 0, stale: 0, critical_stale: 0, offline: 0 };
  const { severity } = standing.target.presence;
  return severity === null ? none : { ...none, [severity]: 1 };
}

/** Agent ids and links hold no character that a shell interprets inside quotes; the API key stays in the environment. */
function copyPasteSteps(context: GuideContext): ActivationPlan["copy_paste_steps"] {
  const { links, settings, query } = context;
  const { endpoint, auth_header, content_type, body } = sessionRequest(context);
  const isRunnable = isReadyToRun(context);
  const read = (url: string) => `curl -sS '${url}'`;
  const request =
    `curl -sS -X POST '${endpoint}' -H 'content-type: ${content_type}' ` +
    `-H "${auth_header}: $RELAY_API_KEY" -d '${JSON.stringify(body)}'`;
  return [
    { step: "Read how envelopes are signed.", command: read(links.signing_manifest) },
    {
      step: "Check that the target is online.",
      command: query.target_agent_id === undefined ? null : read(links.check_online),
    },
    {
      step: "Request a session; the API key is read from RELAY_API_KEY.",
      command: isRunnable ? request : null,
    },
    {
      step: "Read the handoff gate; session_id of that answer is read from RELAY_SESSION_ID.",
      command: isRunnable
        ? `curl -sS "${guideUrl(settings, "marketplaceHandoffStatus", withoutSession(query))}&session_id=$RELAY_SESSION_ID"`
        : null,
    },
  ];
}
