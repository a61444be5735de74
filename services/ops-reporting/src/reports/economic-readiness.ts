import type { EconomicReadiness, ReadinessStage } from "relay-protocol/contract/reports/checks.ts";
import { ECONOMIC_OPERABILITY, PRIVACY, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf, operatorQuickScan } from "./activation.ts";
import {
  completenessOf,
  messages,
  publishedToOnlineTarget,
  quantity,
  sessionCounts,
  sessionRequests,
  totalsOf,
} from "./figures.ts";
import { PROOF_BOUNDARIES, type ProofFreshness, proofGate, proofHeadline } from "./session-proofs.ts";

/** Which stages towards a negotiated deal are ready; work, payment and reputation happen outside the relay. Pure. */
export function economicReadiness(source: ReportSource<"presence">, settings: ReportSettings): EconomicReadiness {
  const { presence } = source;
  const { bottleneck, nextAction, freshness } = activationOf(source, settings);
  const stages = readinessStages(source, freshness);
  // The stages after the proof are no condition of a negotiation handoff.
  const untilProof = stages.slice(0, stages.findIndex(({ stage }) => stage === "online_target_proof") + 1);
  const ready = untilProof.every(({ status }) => status !== "blocked");
  const requests = sessionRequests(source);
  const readyStages = stages.filter(({ status }) => status === "ready").length;
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.economicReadiness.path,
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    ...completenessOf(source),
    status: ready ? "ready_for_negotiation_handoff" : "not_ready_for_negotiation_handoff",
    stages,
    blockers: stages.flatMap(({ stage, blockers }) => blockers.map((blocker) => ({ blocker, stage }))),
    evidence: {
      online_agents: presence.ok,
      stale_agents: presence.stale + presence.critical_stale,
      published_envelopes: totalsOf(source).published_envelopes,
      published_to_online_target: publishedToOnlineTarget(source),
      session_requests_accepted: requests.accepted,
      session_requests_accepted_over_websockets: requests.overWebsockets,
      session_requests_accepted_to_online_target: requests.toOnlineTarget,
      ...sessionCounts(source),
      ...proofGate(freshness, settings.proofFreshnessMs),
    },
    current_bottleneck: bottleneck,
    next_action: nextAction,
    operator_quick_scan: operatorQuickScan(source, settings, `${readyStages} of ${stages.length} stages are ready.`),
    ...SCOPE_FLAGS,
    economic_operability: ECONOMIC_OPERABILITY,
    proof_boundaries: PROOF_BOUNDARIES,
    privacy: PRIVACY,
  };
}

function readinessStages(source: ReportSource<"presence">, freshness: ProofFreshness): ReadinessStage[] {
  const { presence } = source;
  const { published, toOnlineTarget: delivered } = messages(source);
  const { accepted, byGateway, overWebsockets, toOnlineTarget } = sessionRequests(source);
  return [
    blockedBy(
      "connector_presence",
      presence.ok === 0 && "no_connector_online",
      `${quantity(presence.ok, "agent")} online.`,
    ),
    {
      stage: "message_delivery",
      status: delivered > 0 ? "ready" : "not_shown_yet",
      blockers: [],
      evidence: `${quantity(published, "envelope")} published, ${delivered} of them to online targets. Session requests are not counted here.`,
    },
    blockedBy(
      "session_negotiation",
      negotiationBlocker(source, freshness),
      `${quantity(accepted, "session request")} accepted (${byGateway} through the gateway, ${overWebsockets} over websockets), ${toOnlineTarget} of them to online targets.`,
    ),
    blockedBy("online_target_proof", proofBlocker(freshness), proofHeadline(freshness)),
    blockedBy(
      "restart_survival",
      "missing_durable_session_proof_store",
      `${quantity(source.proofs.length, "proof")} kept in the process window only: a deploy's window reset or the loss of Redis ends it, a restart of a service does not.`,
    ),
    {
      stage: "economic_execution",
      status: "outside_the_relay",
      blockers: [],
      evidence: "The relay only coordinates and negotiates; it stores nothing about what follows.",
    },
  ];
}

type Blocker = ReadinessStage["blockers"][number];

function blockedBy(stage: ReadinessStage["stage"], blocker: Blocker | false, evidence: string): ReadinessStage {
  return blocker === false
    ? { stage, status: "ready", blockers: [], evidence }
    : { stage, status: "blocked", blockers: [blocker], evidence };
}

function negotiationBlocker(source: ReportSource<"presence">, freshness: ProofFreshness): Blocker | false {
  if (freshness.state !== "none") return false;
  const requested = sessionRequests(source).accepted > 0 || source.proofs.length > 0;
  return requested ? "session_requests_only_to_offline_targets" : "no_session_request_accepted";
}

function proofBlocker({ state }: ProofFreshness): Blocker | false {
  if (state === "none") return "no_online_target_proof";
  return state === "stale_refresh_due" && "session_proof_stale";
}
