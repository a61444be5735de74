import { ECONOMIC_OPERABILITY, HANDOFF_PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type {
  EcosystemHandoff,
  MarketplaceFirstJobHandoff,
  MarketplaceHandoffStatus,
} from "relay-protocol/contract/reports/guides.ts";
import { canDeliverRealtime } from "relay-window/presence/presence.ts";
import { commonFields, type GuideContext, guideUrl, nextOf, readOf } from "./guide.ts";
import { guideWindow, handoffGate, minimumProofs } from "./handoff-gate.ts";
import type { Standing } from "./standing.ts";

/** The guides from a session proof to the marketplace, which is an external system. Pure. */

export function ecosystemHandoff(context: GuideContext): EcosystemHandoff {
  return {
    ...commonFields(context),
    relay_prerequisites: minimumProofs(context),
    proof_gate: handoffGate(context),
    current_window: guideWindow(context),
    marketplace: marketplaceOf(context),
  };
}

export function marketplaceFirstJobHandoff(context: GuideContext): MarketplaceFirstJobHandoff {
  return {
    ...commonFields(context),
    proof_gate: handoffGate(context),
    steps: bridgeSteps(context),
    marketplace: marketplaceOf(context),
    economic_operability: ECONOMIC_OPERABILITY,
    privacy: HANDOFF_PRIVACY,
  };
}

export function marketplaceHandoffStatus(context: GuideContext): MarketplaceHandoffStatus {
  return {
    ...commonFields(context),
    ...handoffGate(context),
    next_step_url: nextStepUrl(context),
    caveat: CAVEATS[subjectOf(context.standing)],
  };
}

/** Whose proof the gate speaks of. */
function subjectOf({ target, decision }: Standing): keyof typeof CAVEATS {
  if (target === null) return "window";
  return decision === null ? "target" : "session";
}

const CAVEATS = {
  window:
    "Of the last session request in this window that was accepted to any online target: of the request alone, even where its target rejected it since. Add target_agent_id and session_id to know of a decision.",
  target:
    "Of the last session request that was accepted while this target was online, whoever sent it. Add session_id to see its decision on yours.",
  session: "Of the request of this session alone.",
};

/** The guide that describes the step. */
function nextStepUrl({ settings, query, standing }: GuideContext): string {
  switch (standing.allowed) {
    case "open_marketplace_first_job_handoff":
    case "wait_for_target_decision":
      return guideUrl(settings, "marketplaceFirstJobHandoff", query);
    case "request_session_with_online_target":
    case "refresh_session_request_proof":
      return guideUrl(settings, "sessionRequestRefreshPacket", query);
    default:
      return guideUrl(settings, "activationPlan", query);
  }
}

function marketplaceOf({ settings, query }: GuideContext): EcosystemHandoff["marketplace"] {
  return {
    external: true,
    note: "The marketplace is an external system; its endpoints and data are not part of this relay.",
    first_job_handoff: guideUrl(settings, "marketplaceFirstJobHandoff", query),
    handoff_status: guideUrl(settings, "marketplaceHandoffStatus", query),
  };
}

function decisionWords(decision: Standing["decision"]): string {
  if (decision === "rejected")
    return "The target rejected this session, for good: the steps start again with a new request, as next_action says.";
  if (decision === "expired")
    return "This session is over: the steps start again with a new request, as next_action says.";
  return "The target approves a session of yours with a signed session.approve: request one if you have none.";
}

function bridgeSteps(context: GuideContext): MarketplaceFirstJobHandoff["steps"] {
  const { links, standing, settings, query } = context;
  const { target, decision, freshness } = standing;
  const fresh = freshness.state === "fresh";
  return [
    {
      step: "target_online",
      where: "relay",
      done: target === null ? null : canDeliverRealtime(target.presence),
      action: "The target's owner keeps its connector online.",
      ...readOf(links.check_online),
    },
    {
      step: "fresh_proof",
      where: "relay",
      done: fresh,
      action: "Send a session request while the target is online.",
      method: "GET",
      url: guideUrl(settings, "sessionRequestRefreshPacket", query),
    },
    {
      step: "target_decision",
      where: "relay",
      done: decision === null ? null : decision === "approved",
      action: decisionWords(decision),
      ...readOf(links.session),
    },
    {
      step: "handoff_gate",
      where: "relay",
      done: nextOf(context).step === "agree_on_first_job_in_marketplace",
      action: "Read the handoff gate; continue only when it says go, and target_decision is approved.",
      method: "GET",
      url: guideUrl(settings, "marketplaceHandoffStatus", query),
    },
    {
      step: "first_job",
      where: "marketplace",
      done: null,
      action: "Agree on the first job with the target there, and name session_id as the negotiation it came from.",
    },
    {
      step: "execution_and_settlement",
      where: "marketplace",
      done: null,
      action: "Work, payment and completion happen there; no count of the relay is evidence of them.",
    },
  ];
}
