import { ECONOMIC_OPERABILITY } from "@agent-relay/shared/contract/reports/common.ts";
import type {
  EcosystemHandoff,
  MarketplaceFirstJobHandoff,
  MarketplaceHandoffStatus,
} from "@agent-relay/shared/contract/reports/guides-handoff.ts";
import { guideWindow, handoffGate, minimumProofs } from "./figures.ts";
import { type GuideView, guideFrame } from "./view.ts";

/** From the relay's proof to the marketplace. Pure. */

export function ecosystemHandoff(view: GuideView): EcosystemHandoff {
  return {
    ...guideFrame(view),
    relay_prerequisites: minimumProofs(view),
    proof_gate: handoffGate(view),
    current_window: guideWindow(view),
    next_action: view.negotiation.nextAction,
    marketplace: marketplaceOf(view),
  };
}

export function marketplaceFirstJobHandoff(view: GuideView): MarketplaceFirstJobHandoff {
  return {
    ...guideFrame(view),
    proof_gate: handoffGate(view),
    next_action: view.negotiation.nextAction,
    steps: bridgeSteps(view),
    marketplace: marketplaceOf(view),
    economic_operability: ECONOMIC_OPERABILITY,
  };
}

export function marketplaceHandoffStatus(view: GuideView): MarketplaceHandoffStatus {
  return {
    ...guideFrame(view),
    ...handoffGate(view),
    next_action: view.negotiation.nextAction,
    next_step_url: view.links[view.nextStep.link],
    scope: "process_window",
    caveat:
      "The gate speaks of the last session request that any online target was sent in this window; " +
      "for one target read target_delivery of your own request.",
  };
}

function marketplaceOf({ links }: GuideView): EcosystemHandoff["marketplace"] {
  return {
    external: true,
    note: "The marketplace is an external system; its endpoints and data are no part of this relay.",
    first_job_handoff: links.marketplace_first_job_handoff,
    handoff_status: links.marketplace_handoff_status,
  };
}

function bridgeSteps({ links, negotiation, source }: GuideView): MarketplaceFirstJobHandoff["steps"] {
  const fresh = negotiation.freshness.state === "fresh";
  return [
    {
      step: "target_online",
      where: "relay",
      done: source.presence.ok > 0,
      action: "Bring the target's connector online.",
      method: "GET",
      url: links.check_online,
    },
    {
      step: "fresh_proof",
      where: "relay",
      done: fresh,
      action: "Have a session request accepted while the target is online.",
      method: "GET",
      url: links.session_request_refresh_packet,
    },
    {
      step: "target_decision",
      where: "relay",
      done: null,
      action: "Wait for the target's signed session.approve: the session is approved.",
      method: "GET",
      url: links.session,
    },
    {
      step: "handoff_gate",
      where: "relay",
      done: fresh,
      action: "Read the handoff gate; go on only on go.",
      method: "GET",
      url: links.marketplace_handoff_status,
    },
    {
      step: "first_job",
      where: "marketplace",
      done: null,
      action: "Agree on the first job with the target there, naming session_id as the negotiation it came from.",
    },
    {
      step: "execution_and_settlement",
      where: "marketplace",
      done: null,
      action: "Work, payment and completion happen there; no count of the relay is evidence of them.",
    },
  ];
}
