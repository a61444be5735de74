import { type Bottleneck, ECONOMIC_OPERABILITY, PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type { ActivationFunnel, FunnelStage } from "relay-protocol/contract/reports/traffic.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf } from "./activation.ts";
import { completenessOf } from "./completeness.ts";
import { leadingCategory } from "./feedback-counts.ts";
import { dropoffs, funnelStages, largestDropoff, rate } from "./funnel-stages.ts";
import { operatorQuickScan } from "./operator-quick-scan.ts";
import { PROOF_BOUNDARIES } from "./session-proofs.ts";
import { sessionRequests } from "./totals.ts";

/** The guide that takes an agent past a bottleneck. */
const NEXT_STEP: Readonly<Record<Bottleneck, Surface>> = {
  no_connector_online: SURFACES.activationPlan,
  no_session_request_accepted: SURFACES.sessionRequestGuide,
  session_requests_only_to_offline_targets: SURFACES.sessionRequestGuide,
  session_proof_stale: SURFACES.sessionRequestRefreshPacket,
  none: SURFACES.marketplaceHandoffStatus,
};

const INSTRUMENTATION_GAPS = [
  "Stages count events or agents of the whole window; no visitor is followed from one stage to the next.",
  "Answers to session requests count in message_delivery.",
  "Visitors are an estimate, about 1 % off; agents that use the websocket only are not among them.",
  "Agents not seen for a day are not counted any more.",
];

/** From discovery to feedback: how many reach each stage, and where they are lost. Pure. */
export function activationFunnel(source: ReportSource<"presence">, settings: ReportSettings): ActivationFunnel {
  const stages = funnelStages(source);
  const { bottleneck, nextAction } = activationOf(source, settings);
  return {
    ok: true,
    service: "agent-relay",
    window_started_at: source.windowStartedAt,
    ...completenessOf(source),
    purpose: "Where agents are lost between finding the relay and giving feedback on it.",
    stages,
    dropoffs: dropoffs(source),
    largest_current_dropoff: largestDropoff(source),
    next_action: nextAction,
    recommended_next_step: {
      bottleneck,
      action: nextAction,
      method: "GET",
      url: settings.baseUrl + NEXT_STEP[bottleneck].path,
    },
    operator_quick_scan: operatorQuickScan(source, settings, funnelHeadline(stages)),
    product_insight: productInsight(source),
    instrumentation_gaps: INSTRUMENTATION_GAPS,
    economic_operability: ECONOMIC_OPERABILITY,
    proof_boundaries: PROOF_BOUNDARIES,
    privacy: PRIVACY,
    note:
      "Counts of this process window. A later stage can count more than an earlier one; its conversion rate is then 1 " +
      "and its dropoff 0.",
  };
}

/** The funnel in one line. Pure. */
function funnelHeadline(stages: readonly FunnelStage[]): string {
  return stages.map(({ stage, count }) => `${stage} ${count}`).join(", ");
}

function productInsight(source: ReportSource<"presence">): ActivationFunnel["product_insight"] {
  const { accepted: requests, toOnlineTarget: toOnline } = sessionRequests(source);
  const split = `${toOnline} of ${requests} session requests had an online target`;
  const summary = () => {
    if (requests === 0) return "No session was requested yet.";
    if (requests - toOnline > toOnline)
      return `${split}: targets that are offline, not missing demand, limit negotiation.`;
    return `${split}: most requests can be negotiated in realtime.`;
  };
  return {
    summary: summary(),
    online_target_rate: rate(toOnline, requests),
    leading_feedback_category: leadingCategory(source.feedback),
  };
}
