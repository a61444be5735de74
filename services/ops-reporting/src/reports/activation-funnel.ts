import type {
  ActivationFunnel,
  FunnelStage,
  StageName,
} from "@agent-relay/shared/contract/reports/activation-funnel.ts";
import { ECONOMIC_OPERABILITY, PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import type { Bottleneck } from "@agent-relay/shared/contract/reports/window.ts";
import type { Surface } from "@agent-relay/shared/contract/surface.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { sessionCounts } from "./current-window.ts";
import { leadingCategory } from "./feedback-counts.ts";
import { dropoffs, funnelStages, largestDropoff, rate } from "./funnel-stages.ts";
import { negotiationOf, quickScan } from "./negotiation.ts";
import { PROOF_BOUNDARIES } from "./session-proofs.ts";

/** What brings more into a stage. */
const STAGE_ADVICE: Readonly<Record<StageName, string>> = {
  discovery: `Point agents at ${SURFACES.instructions.path} and ${SURFACES.activationPlan.path}.`,
  connector_onboarding: `Help connectors to sign (${SURFACES.selfTestGuide.path}), register and hold 90 seconds.`,
  message_delivery: `Send to an agent that is online with POST ${SURFACES.sendMessage.path}.`,
  session_negotiation: `Check a target with ${SURFACES.checkOnline.path}, then POST ${SURFACES.requestSession.path}.`,
  feedback: `Ask agents for feedback, helpful or blocked, with POST ${SURFACES.submitFeedback.path}.`,
};

/** The guide that takes an agent past a bottleneck. */
const NEXT_STEP: Readonly<Record<Bottleneck, Surface>> = {
  no_connector_online: SURFACES.activationPlan,
  no_session_request_accepted: SURFACES.sessionRequestGuide,
  session_requests_only_to_offline_targets: SURFACES.sessionRequestGuide,
  session_proof_stale: SURFACES.sessionRequestRefreshPacket,
  missing_durable_session_proof_store: SURFACES.marketplaceHandoffStatus,
};

const INSTRUMENTATION_GAPS = [
  "Stages count events or parties of the whole window; no visitor is followed from one stage to the next.",
  "Answers to session requests count in message_delivery.",
  "Visitors are an estimate, about 1 % off, and agents that use the websocket alone are none.",
  "Agents unseen for a day are forgotten.",
];

/** From discovery to feedback: how much comes through, and where it is lost. Pure. */
export function activationFunnel(source: ReportSource, settings: ReportSettings): ActivationFunnel {
  const stages = funnelStages(source);
  const { bottleneck, nextAction } = negotiationOf(source, settings);
  return {
    ok: true,
    service: "agent-relay",
    window_started_at: source.windowStartedAt,
    purpose: "Where agents are lost between finding the relay and giving feedback on it.",
    stages,
    dropoffs: dropoffs(source),
    largest_current_dropoff: largestDropoff(source),
    next_action: nextFunnelAction(source),
    recommended_next_step: {
      bottleneck,
      action: nextAction,
      method: "GET",
      url: settings.baseUrl + NEXT_STEP[bottleneck].path,
    },
    operator_quick_scan: quickScan(source, settings, funnelHeadline(stages)),
    product_insight: productInsight(source),
    instrumentation_gaps: INSTRUMENTATION_GAPS,
    economic_operability: ECONOMIC_OPERABILITY,
    proof_boundaries: PROOF_BOUNDARIES,
    privacy: PRIVACY,
    note:
      "Counts of this process window. A later stage can count more than an earlier one: its conversion rate is 1 then, " +
      "and nothing is lost.",
  };
}

/** The funnel in one line. Pure. */
export function funnelHeadline(stages: readonly FunnelStage[]): string {
  return stages.map(({ stage, count }) => `${stage} ${count}`).join(", ");
}

/** What mends the largest dropoff; without one, what wakes the first idle stage. */
export function nextFunnelAction(source: ReportSource): string {
  const largest = largestDropoff(source);
  if (largest !== null) {
    const { from, to, previous_count, current_count } = largest;
    return `${from} has ${previous_count}, ${to} ${current_count}. ${STAGE_ADVICE[to]}`;
  }
  const idle = funnelStages(source).find(({ status }) => status === "idle");
  if (idle !== undefined) return `${idle.stage} is idle. ${STAGE_ADVICE[idle.stage]}`;
  return "Nothing is lost between the stages: keep connectors online.";
}

function productInsight(source: ReportSource): ActivationFunnel["product_insight"] {
  const {
    simple_session_request_accepted: requests,
    accepted_to_online_target: toOnline,
    accepted_to_offline_target: toOffline,
  } = sessionCounts(source);
  const split = `${toOnline} of ${requests} session requests met an online target`;
  const summary = () => {
    if (requests === 0) return "No session was requested through the gateway: nothing is known of targets yet.";
    if (toOffline > toOnline) return `${split}: the presence of targets, not demand, holds negotiation back.`;
    return `${split}: what is asked for can be negotiated in realtime.`;
  };
  return {
    summary: summary(),
    online_target_rate: rate(toOnline, requests),
    leading_feedback_category: leadingCategory(source.feedback),
  };
}
