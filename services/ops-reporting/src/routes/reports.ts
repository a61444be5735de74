import type { Handlers } from "@agent-relay/shared/http/router.ts";
import { activationFunnel } from "../reports/activation-funnel.ts";
import { economicReadiness } from "../reports/economic-readiness.ts";
import { feedbackSummary } from "../reports/feedback-summary.ts";
import { restartSurvivalCheck } from "../reports/restart-survival-check.ts";
import { sessionProofRetention } from "../reports/session-proof-retention.ts";
import { trafficDaily } from "../reports/traffic-daily.ts";
import type { OpsReportingSettings, ReportSettings } from "../settings.ts";
import { type ReportSource, readSource, type SourceDeps } from "../source.ts";

interface Deps extends SourceDeps {
  readonly settings: OpsReportingSettings;
}

type Routes = Pick<
  Handlers<"ops-reporting">,
  | "trafficDaily"
  | "activationFunnel"
  | "sessionProofRetention"
  | "economicReadiness"
  | "feedbackSummary"
  | "restartSurvivalCheck"
>;

/** Every report is a pure function of one read of the window. */
export function reportRoutes(deps: Deps): Routes {
  const report =
    <Body>(compute: (source: ReportSource, settings: ReportSettings) => Body) =>
    async () =>
      compute(await readSource(deps), deps.settings);
  return {
    trafficDaily: report(trafficDaily),
    activationFunnel: report(activationFunnel),
    sessionProofRetention: report(sessionProofRetention),
    economicReadiness: report(economicReadiness),
    feedbackSummary: report(feedbackSummary),
    restartSurvivalCheck: report(restartSurvivalCheck),
  };
}
