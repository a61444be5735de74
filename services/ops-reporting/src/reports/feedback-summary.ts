import type { FeedbackSummary } from "relay-protocol/contract/reports/checks.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import type { BlockerCategory } from "relay-protocol/contract/requests.ts";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf } from "./activation.ts";
import { completenessOf } from "./completeness.ts";
import { feedbackActions } from "./feedback-actions.ts";
import { blockerCounts, countsByLabel } from "./feedback-counts.ts";

type Suggested = FeedbackSummary["suggested_blocked_feedback"];

/** Counts of the feedback by its labels, and what to do about it. Pure. */
export function feedbackSummary(source: ReportSource<"presence">, settings: ReportSettings): FeedbackSummary {
  const { feedback } = source;
  const { feedbackSummary: summary, submitFeedback: submit } = SURFACES;
  return {
    ok: true,
    service: "agent-relay",
    endpoint: summary.path,
    endpoint_aliases: [...summary.aliases],
    submit_method: "POST",
    submit_endpoint: submit.path,
    submit_endpoint_aliases: [...submit.aliases],
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    ...completenessOf(source),
    feedback: {
      total: feedback.get("total") ?? 0,
      message_provided: feedback.get("message_provided") ?? 0,
      by_surface: countsByLabel(feedback, "surface"),
      by_sentiment: countsByLabel(feedback, "sentiment"),
      by_category: countsByLabel(feedback, "category"),
      connector_session_blocker_categories: blockerCounts(feedback),
      note: "Labels are normalised to closed sets and counted. Messages are not stored; only their number is.",
    },
    feedback_actions: feedbackActions(feedback, settings.baseUrl),
    suggested_blocked_feedback: suggestedBlockedFeedback(source, settings),
    privacy: PRIVACY,
  };
}

/** The surface that feedback of each category is about. */
const SURFACE_OF: Readonly<Record<BlockedCategory, SurfaceId>> = {
  connector_not_seen: "checkOnline",
  stale_presence: "checkOnline",
  session_request_failed: "requestSession",
  next_step_unclear: "activationPlan",
  durable_store_missing_or_not_written_yet: "restartSurvivalCheck",
};
type BlockedCategory = BlockerCategory | "durable_store_missing_or_not_written_yet";

function suggestedBlockedFeedback(source: ReportSource<"presence">, settings: ReportSettings): Suggested {
  const category = blockedCategory(source, settings);
  return { surface: SURFACE_OF[category], sentiment: "blocked", category };
}

/** The category under which an agent that cannot go on in this window would report it. */
function blockedCategory(source: ReportSource<"presence">, settings: ReportSettings): BlockedCategory {
  const { presence, proofs } = source;
  switch (activationOf(source, settings).bottleneck) {
    case "no_connector_online":
      return presence.stale + presence.critical_stale + presence.offline > 0 ? "stale_presence" : "connector_not_seen";
    case "no_session_request_accepted":
      return "next_step_unclear";
    case "session_requests_only_to_offline_targets":
      return proofs[0]?.targetStatus === "not_seen" ? "connector_not_seen" : "stale_presence";
    case "session_proof_stale":
      return presence.ok > 0 ? "session_request_failed" : "stale_presence";
    case "none":
      return "durable_store_missing_or_not_written_yet";
  }
}
