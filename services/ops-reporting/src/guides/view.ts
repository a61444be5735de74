import { PRIVACY, SCOPE_FLAGS } from "@agent-relay/shared/contract/reports/common.ts";
import { type GuideLinks, TARGET_PLACEHOLDER } from "@agent-relay/shared/contract/reports/guides.ts";
import { type Negotiation, negotiationOf } from "../reports/negotiation.ts";
import { PROOF_BOUNDARIES } from "../reports/session-proofs.ts";
import type { OpsReportingSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { guideLinks } from "./links.ts";
import { type NextStep, nextStepOf } from "./next-step.ts";

export type GuideSettings = Pick<OpsReportingSettings, "baseUrl" | "wsUrl" | "proofFreshnessMs">;

/** The window as a guide sees it: what every guide is written from. */
export interface GuideView {
  readonly source: ReportSource;
  readonly settings: GuideSettings;
  /** The agent asked for, else the placeholder: never one that the window knows. */
  readonly target: string;
  readonly links: GuideLinks;
  readonly negotiation: Negotiation;
  readonly nextStep: NextStep;
}

/** Pure. */
export function guideView(source: ReportSource, settings: GuideSettings, targetAgentId?: string): GuideView {
  const target = targetAgentId ?? TARGET_PLACEHOLDER;
  const negotiation = negotiationOf(source, settings);
  return {
    source,
    settings,
    target,
    links: guideLinks(settings, target),
    negotiation,
    nextStep: nextStepOf(source.presence, negotiation.freshness),
  };
}

/** What every guide begins and ends with. */
export function guideFrame({ source, target, links }: GuideView) {
  return {
    ok: true,
    service: "agent-relay",
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    target_agent_id: target,
    links,
    proof_boundaries: PROOF_BOUNDARIES,
    ...SCOPE_FLAGS,
    privacy: PRIVACY,
  } as const;
}
