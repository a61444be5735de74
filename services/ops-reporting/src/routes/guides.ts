import type { Handlers } from "@agent-relay/shared/http/router.ts";
import { activationPlan } from "../guides/activation-plan.ts";
import { ecosystemHandoff, marketplaceFirstJobHandoff, marketplaceHandoffStatus } from "../guides/handoff.ts";
import { sessionRequestRefreshPacket } from "../guides/refresh-packet.ts";
import { sessionRequestGuide } from "../guides/session-request-guide.ts";
import { type GuideView, guideView } from "../guides/view.ts";
import type { OpsReportingSettings } from "../settings.ts";
import { readSource, type SourceDeps } from "../source.ts";

interface Deps extends SourceDeps {
  readonly settings: OpsReportingSettings;
}
type Routes = Pick<
  Handlers<"ops-reporting">,
  | "activationPlan"
  | "sessionRequestGuide"
  | "sessionRequestRefreshPacket"
  | "ecosystemHandoff"
  | "marketplaceFirstJobHandoff"
  | "marketplaceHandoffStatus"
>;
type GuideContext = { readonly state: { readonly query: { readonly target_agent_id?: string | undefined } } };

/** Every guide is a pure function of one read of the window, the settings and the target asked for. */
export function guideRoutes(deps: Deps): Routes {
  const guide =
    <Guide>(write: (view: GuideView) => Guide) =>
    async ({ state }: GuideContext) =>
      write(guideView(await readSource(deps), deps.settings, state.query.target_agent_id));
  return {
    activationPlan: guide(activationPlan),
    sessionRequestGuide: guide(sessionRequestGuide),
    sessionRequestRefreshPacket: guide(sessionRequestRefreshPacket),
    ecosystemHandoff: guide(ecosystemHandoff),
    marketplaceFirstJobHandoff: guide(marketplaceFirstJobHandoff),
    marketplaceHandoffStatus: guide(marketplaceHandoffStatus),
  };
}
