import type { GuideLinks, HandoffGate } from "@agent-relay/shared/contract/reports/guides.ts";
import type { PresenceCounts } from "@agent-relay/shared/window/presence.ts";
import type { ProofFreshness } from "../reports/proof-freshness.ts";

export interface NextStep {
  readonly step: HandoffGate["allowed_next_step"];
  /** The guide to it. */
  readonly link: keyof GuideLinks;
}

/** The one step that presence and proof allow. A fresh proof carries a handoff whoever is online by now. Pure. */
export function nextStepOf(presence: PresenceCounts, { state }: Pick<ProofFreshness, "state">): NextStep {
  if (state === "fresh") return { step: "open_marketplace_first_job_handoff", link: "marketplace_first_job_handoff" };
  const { ok, stale, critical_stale, offline } = presence;
  if (ok + stale + critical_stale + offline === 0) return { step: "connect_target_connector", link: "activation_plan" };
  if (ok === 0) return { step: "bring_target_connector_online", link: "activation_plan" };
  const isRefresh = state === "stale_refresh_due";
  return {
    step: isRefresh ? "refresh_session_request_proof" : "request_session_with_online_target",
    link: "session_request_refresh_packet",
  };
}
