import { ECONOMIC_OPERABILITY, PRIVACY, SCOPE_FLAGS } from "@agent-relay/shared/contract/reports/common.ts";
import type { EconomicReadiness, ReadinessStage } from "@agent-relay/shared/contract/reports/economic-readiness.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { sessionCounts } from "./current-window.ts";
import { negotiationOf, proofHeadline, quickScan } from "./negotiation.ts";
import { type ProofFreshness, proofGate } from "./proof-freshness.ts";
import { PROOF_BOUNDARIES } from "./session-proofs.ts";
import { totalsOf } from "./totals.ts";
import { count } from "./wording.ts";

/** How far the relay's part of agents' business is ready; the rest happens elsewhere. Pure. */
export function economicReadiness(source: ReportSource, settings: ReportSettings): EconomicReadiness {
  const { presence } = source;
  const { bottleneck, nextAction, freshness } = negotiationOf(source, settings);
  const stages = readinessStages(source, freshness);
  const ready = freshness.state === "fresh";
  const ofAll = stages.filter(({ status }) => status === "ready").length;
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.economicReadiness.path,
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    status: ready ? "ready_for_negotiation_handoff" : "not_ready_for_negotiation_handoff",
    stages,
    blockers: stages.flatMap(({ stage, blockers }) => blockers.map((blocker) => ({ blocker, stage }))),
    evidence: {
      online_agents: presence.ok,
      stale_agents: presence.stale + presence.critical_stale,
      published_envelopes: totalsOf(source).published_envelopes,
      ...sessionCounts(source),
      ...proofGate(freshness, settings.proofFreshnessMs),
    },
    current_bottleneck: bottleneck,
    next_action: nextAction,
    operator_quick_scan: quickScan(source, settings, `${ofAll} of ${stages.length} stages are ready.`),
    ...SCOPE_FLAGS,
    economic_operability: ECONOMIC_OPERABILITY,
    proof_boundaries: PROOF_BOUNDARIES,
    privacy: PRIVACY,
  };
}

function readinessStages(source: ReportSource, freshness: ProofFreshness): ReadinessStage[] {
  const { presence } = source;
  const published = totalsOf(source).published_envelopes;
  const { accepted_to_online_target: toOnline, accepted_to_offline_target: toOffline } = sessionCounts(source);
  return [
    blockedBy(
      "connector_presence",
      presence.ok === 0 && "no_connector_online",
      `${count(presence.ok, "agent")} online.`,
    ),
    {
      stage: "message_delivery",
      status: published > 0 ? "ready" : "not_shown_yet",
      blockers: [],
      evidence: `${count(published, "envelope")} published.`,
    },
    blockedBy(
      "session_negotiation",
      negotiationBlocker(source, freshness),
      `Gateway session requests: ${toOnline} to online targets, ${toOffline} to others.`,
    ),
    blockedBy("online_target_proof", proofBlocker(freshness), proofHeadline(freshness)),
    blockedBy(
      "restart_survival",
      "missing_durable_session_proof_store",
      `${count(source.proofs.length, "proof")} kept in the process window alone.`,
    ),
    {
      stage: "economic_execution",
      status: "outside_the_relay",
      blockers: [],
      evidence: "The relay coordinates and negotiates only; it holds no record of what follows.",
    },
  ];
}

type Blocker = ReadinessStage["blockers"][number];

function blockedBy(stage: ReadinessStage["stage"], blocker: Blocker | false, evidence: string): ReadinessStage {
  return blocker === false
    ? { stage, status: "ready", blockers: [], evidence }
    : { stage, status: "blocked", blockers: [blocker], evidence };
}

/** A proof outweighs the counters: it may come from a websocket. */
function negotiationBlocker(source: ReportSource, freshness: ProofFreshness): Blocker | false {
  if (freshness.state !== "none") return false;
  const requested = sessionCounts(source).simple_session_request_accepted > 0 || source.proofs.length > 0;
  return requested ? "session_requests_only_to_offline_targets" : "no_session_request_accepted";
}

function proofBlocker({ state }: ProofFreshness): Blocker | false {
  if (state === "none") return "no_online_target_proof";
  return state === "stale_refresh_due" && "session_proof_stale";
}
