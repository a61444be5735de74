import type { Handlers } from "relay-runtime/http/router.ts";
import { activationFunnel } from "../reports/activation-funnel.ts";
import { diagnostics } from "../reports/diagnostics.ts";
import { economicReadiness } from "../reports/economic-readiness.ts";
import { feedbackSummary } from "../reports/feedback-summary.ts";
import { restartSurvivalCheck } from "../reports/restart-survival-check.ts";
import { sessionJourneys } from "../reports/session-journeys.ts";
import { sessionProofRetention } from "../reports/session-proof-retention.ts";
import { trafficDaily } from "../reports/traffic-daily.ts";
import type { OpsReportingSettings, ReportSettings } from "../settings.ts";
import type { ReportPart, ReportSource, WindowReader } from "../window-reader.ts";

type Endpoints = Pick<
  Handlers<"ops-reporting">,
  | "trafficDaily"
  | "activationFunnel"
  | "sessionProofRetention"
  | "economicReadiness"
  | "feedbackSummary"
  | "restartSurvivalCheck"
  | "diagnostics"
  | "sessionJourneys"
>;

/** Every report is a pure function of the settings, the figures of the window, and the parts that are named here. */
export function reportEndpoints(reader: WindowReader, settings: OpsReportingSettings): Endpoints {
  const report =
    <Part extends ReportPart, Body>(
      compute: (source: ReportSource<NoInfer<Part>>, settings: ReportSettings) => Body,
      ...parts: readonly Part[]
    ) =>
    async () =>
      compute(await reader.read(...parts), settings);
  return {
    trafficDaily: report(trafficDaily, "presence", "journeys"),
    activationFunnel: report(activationFunnel, "presence"),
    sessionProofRetention: report(sessionProofRetention, "presence"),
    economicReadiness: report(economicReadiness, "presence"),
    feedbackSummary: report(feedbackSummary, "presence"),
    restartSurvivalCheck: report(restartSurvivalCheck, "presence"),
    diagnostics: report(diagnostics, "presence", "gatewayKeys", "connections"),
    sessionJourneys: report(sessionJourneys, "journeys"),
  };
}
