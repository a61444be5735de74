import { PRIVACY, SCOPE_FLAGS } from "protocol/contract/reports/common.ts";
import { type GuideFrame, TARGET_PLACEHOLDER } from "protocol/contract/reports/guides.ts";
import { SURFACES } from "protocol/contract/surfaces.ts";
import { PROOF_BOUNDARIES } from "../reports/session-proofs.ts";
import type { GuideContext } from "./guide-context.ts";
import { templatesOf } from "./links.ts";
import { nextOf } from "./next.ts";

/** The fields that all guides have in common. */
export function commonFields(context: GuideContext): GuideFrame {
  const { source, settings, query, missing, links, standing } = context;
  return {
    ok: true,
    service: "agent-relay",
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    target_agent_id: query.target_agent_id ?? TARGET_PLACEHOLDER,
    ready_to_run: missing.length === 0,
    missing: [...missing],
    next: nextOf(context),
    target_decision: standing.target?.decision ?? null,
    links,
    templates: templatesOf(query),
    feedback: { method: "POST", url: settings.baseUrl + SURFACES.submitFeedback.path },
    proof_boundaries: PROOF_BOUNDARIES,
    ...SCOPE_FLAGS,
    privacy: PRIVACY,
  };
}
