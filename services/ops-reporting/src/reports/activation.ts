import {
  type Bottleneck,
  ECONOMIC_OPERABILITY,
  type OperatorQuickScan,
  PRIVACY,
} from "relay-protocol/contract/reports/common.ts";
import type {
  ActivationFunnel,
  ActivationStatus,
  Dropoff,
  FunnelStage,
  StageName,
} from "relay-protocol/contract/reports/traffic.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { fleetAdvice } from "relay-window/window/readiness.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import {
  checksTotal,
  completenessOf,
  duration,
  leadingCategory,
  messages,
  quantity,
  sessionCounts,
  sessionRequests,
  totalsOf,
} from "./figures.ts";
import { PROOF_BOUNDARIES, PROOFS_END, type ProofFreshness, proofFreshness, proofGate } from "./session-proofs.ts";

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

interface Counted {
  readonly stage: StageName;
  readonly count: number;
  readonly evidence: string;
}

/** The five stages, in order. Pure. */
export function funnelStages(source: ReportSource<"presence">): FunnelStage[] {
  const stages = countedStages(source);
  return stages.map((current, index) => {
    const previous = stages[index - 1];
    return {
      stage: current.stage,
      status: statusOf(current, source),
      count: current.count,
      evidence: current.evidence,
      previous_stage: previous?.stage ?? null,
      dropoff_from_previous: previous === undefined ? null : lost(previous, current),
      conversion_rate_from_previous: previous === undefined ? null : rate(current.count, previous.count),
    };
  });
}

/** The loss between each stage and the next. Pure. */
export function dropoffs(source: ReportSource<"presence">): Dropoff[] {
  const stages = countedStages(source);
  return stages.slice(1).map((current, index) => {
    const previous = stages[index] as Counted;
    return {
      from: previous.stage,
      to: current.stage,
      previous_count: previous.count,
      current_count: current.count,
      dropoff_count: lost(previous, current),
      conversion_rate: rate(current.count, previous.count),
      status: dropoffStatus(previous, current),
    };
  });
}

/** The largest dropoff, the earliest among equals; null when nothing is lost. Pure. */
export function largestDropoff(source: ReportSource<"presence">): Dropoff | null {
  const losses = dropoffs(source).filter(({ dropoff_count }) => dropoff_count > 0);
  return losses.toSorted((a, b) => b.dropoff_count - a.dropoff_count)[0] ?? null;
}

/** The share of `part` in `whole`, at most 1; null when `whole` is 0. Pure. */
export function rate(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.min(1, part / whole);
}

/** The first two stages count visitors and agents, the others what these did. */
function countedStages(source: ReportSource<"presence">): Counted[] {
  const { presence } = source;
  const totals = totalsOf(source);
  const { ok: online, stale, critical_stale, offline } = presence;
  const checks = checksTotal(source.feedback);
  const { accepted: requests, byGateway, overWebsockets } = sessionRequests(source);
  return [
    {
      stage: "discovery",
      count: totals.unique_sessions,
      evidence: `Anonymous visitors of HTTP surfaces, an estimate; ${quantity(totals.surface_views, "view")} in total.`,
    },
    {
      stage: "connector_onboarding",
      count: online + stale + critical_stale + offline,
      evidence: `Agents seen within a day in this window: ${online} online, ${stale + critical_stale} stale, ${offline} offline.`,
    },
    {
      stage: "message_delivery",
      count: messages(source).published,
      evidence: `Published envelopes without session requests: ${totals.published_envelopes} - ${requests}.`,
    },
    {
      stage: "session_negotiation",
      count: requests,
      evidence: `Accepted session requests: ${byGateway} through the gateway, ${overWebsockets} over websockets.`,
    },
    {
      stage: "feedback",
      count: totals.feedback_total - checks,
      evidence: `Feedback without smoke and deploy checks: ${totals.feedback_total} - ${checks}.`,
    },
  ];
}

function statusOf({ stage, count }: Counted, { presence }: ReportSource<"presence">): FunnelStage["status"] {
  if (stage === "connector_onboarding" && presence.ok > 0) return "online";
  return count > 0 ? "active" : "idle";
}

function lost(previous: Counted, current: Counted): number {
  return Math.max(0, previous.count - current.count);
}

function dropoffStatus(previous: Counted, current: Counted): Dropoff["status"] {
  if (previous.count === 0) return "no_traffic";
  if (current.count === 0) return "blocked";
  return current.count < previous.count ? "dropoff" : "no_dropoff";
}

/** How far the window has come towards a fresh session proof, what keeps it from going on, and what to do next. */
export interface Activation {
  readonly status: ActivationStatus;
  readonly bottleneck: Bottleneck;
  readonly nextAction: string;
  readonly freshness: ProofFreshness;
}

/**
 * Computed in this one place for all reports and guides. Pure.
 */
export function activationOf(
  source: ReportSource<"presence">,
  settings: Pick<ReportSettings, "proofFreshnessMs">,
): Activation {
  const { presence, proofs } = source;
  const freshness = proofFreshness(source, settings.proofFreshnessMs);
  const anyOnline = presence.ok > 0;
  const fleet = fleetAdvice(presence, source);
  if (freshness.state === "fresh") {
    const freshFor = `The last request that reached an online target, whoever sent it, is a fresh proof for another ${duration(freshness.msUntilRefreshDue ?? 0)}. ${PROOFS_END}`;
    return {
      status: "proof_fresh",
      bottleneck: anyOnline ? "none" : "no_connector_online",
      nextAction: anyOnline
        ? `${freshFor} It says nothing of a decision: read the handoff gate with your target_agent_id and session_id.`
        : `${fleet} ${freshFor}`,
      freshness,
    };
  }
  if (freshness.state === "stale_refresh_due") {
    return {
      status: "proof_stale_refresh_due",
      bottleneck: "session_proof_stale",
      nextAction: `The last proof expired ${duration(freshness.staleByMs ?? 0)} ago; refresh it. ${fleet}`,
      freshness,
    };
  }
  const requests = Math.max(sessionRequests(source).accepted, proofs.length);
  if (requests > 0) {
    return {
      status: "waiting_for_online_target",
      bottleneck: "session_requests_only_to_offline_targets",
      nextAction: `${quantity(requests, "session request")} accepted, none to an online target. ${fleet}`,
      freshness,
    };
  }
  return {
    status: anyOnline ? "waiting_for_session_request" : "waiting_for_connector",
    bottleneck: anyOnline ? "no_session_request_accepted" : "no_connector_online",
    nextAction: fleet,
    freshness,
  };
}

/** The figures that an operator reads first, the same in every report. Pure. @param headline of the report that shows it. */
export function operatorQuickScan(
  source: ReportSource<"presence">,
  settings: ReportSettings,
  headline: string,
): OperatorQuickScan {
  const { presence } = source;
  const { bottleneck, nextAction, freshness } = activationOf(source, settings);
  const { simple_session_request_accepted, accepted_to_online_target, accepted_to_offline_target } =
    sessionCounts(source);
  const { proof_freshness, refresh_urgency, ms_until_refresh_due } = proofGate(freshness, settings.proofFreshnessMs);
  return {
    headline,
    online_agents: presence.ok,
    stale_agents: presence.stale + presence.critical_stale,
    simple_session_request_accepted,
    accepted_to_online_target,
    accepted_to_offline_target,
    proof_freshness,
    refresh_urgency,
    ms_until_refresh_due,
    current_bottleneck: bottleneck,
    next_action: nextAction,
  };
}
