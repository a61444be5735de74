import {
  Diagnostics,
  DomainRouting,
  EconomicReadiness,
  FeedbackSummary,
  RestartSurvivalCheck,
} from "./reports/checks.ts";
import {
  ActivationPlan,
  EcosystemHandoff,
  GuideQuery,
  MarketplaceFirstJobHandoff,
  MarketplaceHandoffStatus,
  SessionRequestGuide,
  SessionRequestRefreshPacket,
} from "./reports/guides.ts";
import { ActivationFunnel, SessionJourneys, SessionProofRetention, TrafficDaily } from "./reports/traffic.ts";
import { get, type Surface } from "./surface.ts";

/** Reports of the process window. The service ops-reporting answers them. */
export const REPORT_SURFACES = {
  trafficDaily: get({
    path: "/api/ops/traffic-daily",
    aliases: ["/api/ops/traffic-summary"],
    service: "ops-reporting",
    group: "diagnostics",
    summary: "Traffic of the process window: exact totals.",
    response: TrafficDaily,
    errors: ["unavailable"],
  }),
  activationFunnel: get({
    path: "/api/ops/activation-funnel",
    service: "ops-reporting",
    group: "diagnostics",
    summary: "Five stages from discovery to feedback, and where agents drop off.",
    response: ActivationFunnel,
    errors: ["unavailable"],
  }),
  sessionProofRetention: get({
    path: "/api/ops/session-proof-retention",
    service: "ops-reporting",
    group: "diagnostics",
    summary: "Retained proofs of accepted session requests, and whether the latest is fresh.",
    response: SessionProofRetention,
    errors: ["unavailable"],
  }),
  economicReadiness: get({
    path: "/api/ops/economic-readiness",
    service: "ops-reporting",
    group: "diagnostics",
    summary: "What is ready and what is blocked, stage by stage, with evidence.",
    response: EconomicReadiness,
    errors: ["unavailable"],
  }),
  feedbackSummary: get({
    path: "/api/public/feedback-summary",
    aliases: [
      "/api/public/feedback/summary",
      "/api/feedback/summary",
      "/api/ops/feedback-summary",
      "/api/ops/feedback",
    ],
    service: "ops-reporting",
    group: "feedback",
    summary: "Feedback counted by label, and recommended actions.",
    response: FeedbackSummary,
    errors: ["unavailable"],
  }),
  restartSurvivalCheck: get({
    path: "/api/public/restart-survival-check",
    service: "ops-reporting",
    group: "diagnostics",
    summary: "What ends session proofs and which would be gone, with a runbook.",
    response: RestartSurvivalCheck,
    errors: ["unavailable"],
  }),
  diagnostics: get({
    path: "/api/diagnostics",
    aliases: ["/api/ops/diagnostics"],
    service: "ops-reporting",
    group: "diagnostics",
    summary: "The state of the relay in aggregates: window, presence, counters, proofs, gateways, feedback.",
    response: Diagnostics,
    errors: ["unavailable"],
  }),
  sessionJourneys: get({
    path: "/api/ops/session-journeys",
    service: "ops-reporting",
    group: "diagnostics",
    summary:
      "Anonymous journeys of the latest visitors: their actions in order, where they stopped, and the next action.",
    response: SessionJourneys,
    errors: ["unavailable"],
  }),
  domainRouting: get({
    path: "/api/ops/domain-routing",
    service: "ops-reporting",
    group: "diagnostics",
    summary: "Host and proxy origin of this request, expected public hosts, and hints about stale custom domains.",
    response: DomainRouting,
  }),
} as const satisfies Record<string, Surface>;

const GUIDE = {
  service: "ops-reporting",
  group: "guides",
  query: GuideQuery,
  errors: ["invalid_request", "unavailable"],
} as const;

/** Guides and handoff: the next step, by the counts of the window. The service ops-reporting answers them. */
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
