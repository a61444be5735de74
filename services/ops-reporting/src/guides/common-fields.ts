import { PRIVACY, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import { type GuideFrame, TARGET_PLACEHOLDER } from "relay-protocol/contract/reports/guides.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { REPORT_LIMITS } from "relay-protocol/wire/limits.ts";
import { PROOF_BOUNDARIES } from "../reports/session-proofs.ts";
import type { GuideContext } from "./guide-context.ts";
import { templatesOf } from "./links.ts";
import { isReadyToRun, nextOf } from "./next.ts";

/** The fields that all guides have in common. */
export function commonFields(context: GuideContext): GuideFrame {
  const { source, settings, query, missing, links, standing } = context;
  const next = nextOf(context);
  return {
    ok: true,
    service: "agent-relay",
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    max_behind_ms: REPORT_LIMITS.maxBehindMs,
    target_agent_id: query.target_agent_id ?? TARGET_PLACEHOLDER,
    ready_to_run: isReadyToRun(context),
    missing: [...missing],
    next,
    next_action: next.action,
    target_decision: standing.decision,
    links,
    templates: templatesOf(links, next),
    feedback: { method: "POST", url: settings.baseUrl + SURFACES.submitFeedback.path },
    proof_boundaries: PROOF_BOUNDARIES,
    ...SCOPE_FLAGS,
    privacy: PRIVACY,
  };
}
