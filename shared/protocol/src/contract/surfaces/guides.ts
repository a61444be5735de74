import { GuideQuery } from "../reports/guides.ts";
import { ActivationPlan } from "../reports/guides-activation.ts";
import { EcosystemHandoff, MarketplaceFirstJobHandoff, MarketplaceHandoffStatus } from "../reports/guides-handoff.ts";
import { SessionRequestGuide, SessionRequestRefreshPacket } from "../reports/guides-session-request.ts";
import { get, type Surface } from "../surface.ts";

const GUIDE = {
  service: "ops-reporting",
  group: "guides",
  query: GuideQuery,
  errors: ["invalid_request", "unavailable"],
} as const;

/** Guides and handoff: what to do next, by the counts of the window. Answered by ops-reporting. */
export const GUIDE_SURFACES = {
  activationPlan: get({
    ...GUIDE,
    path: "/api/public/activation-plan",
    summary: "Readiness, the next action, connector recovery, and commands to copy.",
    response: ActivationPlan,
  }),
  sessionRequestGuide: get({
    ...GUIDE,
    path: "/api/public/session-request-guide",
    summary: "How to request a session, and how to verify that it became a proof.",
    response: SessionRequestGuide,
  }),
  sessionRequestRefreshPacket: get({
    ...GUIDE,
    path: "/api/public/session-request-refresh-packet",
    summary: "The next session request, ready to send.",
    response: SessionRequestRefreshPacket,
  }),
  ecosystemHandoff: get({
    ...GUIDE,
    path: "/api/public/ecosystem-handoff",
    summary: "What the relay must show before a handoff to the marketplace, an external system.",
    response: EcosystemHandoff,
  }),
  marketplaceFirstJobHandoff: get({
    ...GUIDE,
    path: "/api/public/marketplace-first-job-handoff",
    summary: "The steps from a relay proof to a first job in the marketplace.",
    response: MarketplaceFirstJobHandoff,
  }),
  marketplaceHandoffStatus: get({
    ...GUIDE,
    path: "/api/public/marketplace-handoff-status",
    summary:
      "Whether a request's proof permits a handoff; what a target decided, only with its target_agent_id and session_id.",
    response: MarketplaceHandoffStatus,
  }),
} as const satisfies Record<string, Surface>;
