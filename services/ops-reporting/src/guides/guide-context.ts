import type { GuideLinks, GuideQuery, MISSING_PARAMETERS } from "relay-protocol/contract/reports/guides.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import type { OpsReportingSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { type GuideId, guideLinks } from "./links.ts";
import { type Standing, targetStanding, windowStanding } from "./standing.ts";

export type GuideSettings = Pick<OpsReportingSettings, "baseUrl" | "wsUrl" | "proofFreshnessMs" | "proofIdentities">;
type Parameter = (typeof MISSING_PARAMETERS)[number];

/** What every guide is written from. */
export interface GuideContext {
  readonly guide: GuideId;
  readonly source: ReportSource<"presence">;
  readonly settings: GuideSettings;
  readonly query: GuideQuery;
  /** Query parameters without which the guide cannot print all its requests. */
  readonly missing: readonly Parameter[];
  readonly links: GuideLinks;
  readonly standing: Standing;
}

/** The gate and the way to it print no request that names the sender; the handoff names the session that it is made for. */
const NEEDS: Readonly<Record<GuideId, readonly Parameter[]>> = {
  activationPlan: ["from", "target_agent_id"],
  sessionRequestGuide: ["from", "target_agent_id"],
  sessionRequestRefreshPacket: ["from", "target_agent_id"],
  ecosystemHandoff: ["target_agent_id"],
  marketplaceFirstJobHandoff: ["from", "target_agent_id", "session_id"],
  marketplaceHandoffStatus: ["target_agent_id"],
};

/** Pure. @param target that the query names; null without one. */
export function guideContext(
  guide: GuideId,
  source: ReportSource<"presence">,
  settings: GuideSettings,
  query: GuideQuery = {},
  target: Target | null = null,
): GuideContext {
  const standing =
    target === null ? windowStanding(source, settings, query) : targetStanding(source, target, settings, query);
  return {
    guide,
    source,
    settings,
    query,
    missing: NEEDS[guide].filter((name) => query[name] === undefined),
    links: guideLinks(settings, query, standing.decision),
    standing,
  };
}
