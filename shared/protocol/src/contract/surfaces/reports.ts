import { ActivationFunnel } from "../reports/activation-funnel.ts";
import { Diagnostics } from "../reports/diagnostics.ts";
import { DomainRouting } from "../reports/domain-routing.ts";
import { EconomicReadiness } from "../reports/economic-readiness.ts";
import { FeedbackSummary } from "../reports/feedback-summary.ts";
import { RestartSurvivalCheck } from "../reports/restart-survival-check.ts";
import { SessionJourneys } from "../reports/session-journeys.ts";
import { SessionProofRetention } from "../reports/session-proof-retention.ts";
import { TrafficDaily } from "../reports/traffic-daily.ts";
import { get, type Surface } from "../surface.ts";

/** Reports of the process window. Answered by ops-reporting. */
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
