import type { BlockerCategory } from "@agent-relay/shared/contract/feedback-labels.ts";
import { PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import type { FeedbackSummary } from "@agent-relay/shared/contract/reports/feedback-summary.ts";
import { SURFACES, type SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../source.ts";
import { feedbackActions } from "./feedback-actions.ts";
import { blockerCounts, labelled } from "./feedback-counts.ts";
import { negotiationOf } from "./negotiation.ts";

type Suggested = FeedbackSummary["suggested_blocked_feedback"];

/** Feedback as counted by its labels, and what it asks for. Pure. */
export function feedbackSummary(source: ReportSource, settings: ReportSettings): FeedbackSummary {
  const { feedback } = source;
  const { feedbackSummary: summary, submitFeedback: submit } = SURFACES;
  return {
    ok: true,
    service: "agent-relay",
    endpoint: summary.path,
    endpoint_aliases: [...summary.aliases],
    submit_endpoint: submit.path,
    submit_endpoint_aliases: [...submit.aliases],
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    feedback: {
      total: feedback.get("total") ?? 0,
      message_provided: feedback.get("message_provided") ?? 0,
      by_surface: labelled(feedback, "surface"),
      by_sentiment: labelled(feedback, "sentiment"),
      by_category: labelled(feedback, "category"),
      connector_session_blocker_categories: blockerCounts(feedback),
      note: "Labels are normalised to closed sets and counted; of a message only that there was one.",
    },
    feedback_actions: feedbackActions(feedback, settings.baseUrl),
    suggested_blocked_feedback: suggestedBlockedFeedback(source, settings),
    privacy: PRIVACY,
  };
}

/** The surface that an agent's feedback in a category is about. */
const CONCERNED: Readonly<Record<BlockedCategory, SurfaceId>> = {
  connector_not_seen: "checkOnline",
  stale_presence: "checkOnline",
  session_request_failed: "requestSession",
  next_step_unclear: "activationPlan",
  durable_store_missing_or_not_written_yet: "restartSurvivalCheck",
};
type BlockedCategory = BlockerCategory | "durable_store_missing_or_not_written_yet";

function suggestedBlockedFeedback(source: ReportSource, settings: ReportSettings): Suggested {
  const category = blockedCategory(source, settings);
  return { surface: CONCERNED[category], sentiment: "blocked", category };
}

/** What an agent that this window holds up would report. */
function blockedCategory(source: ReportSource, settings: ReportSettings): BlockedCategory {
  const { presence, proofs } = source;
  switch (negotiationOf(source, settings).bottleneck) {
    case "no_connector_online":
      return presence.stale + presence.critical_stale + presence.offline > 0 ? "stale_presence" : "connector_not_seen";
    case "no_session_request_accepted":
      return "next_step_unclear";
    case "session_requests_only_to_offline_targets":
      return proofs[0]?.targetStatus === "not_seen" ? "connector_not_seen" : "stale_presence";
    case "session_proof_stale":
      return presence.ok > 0 ? "session_request_failed" : "stale_presence";
    case "missing_durable_session_proof_store":
      return "durable_store_missing_or_not_written_yet";
  }
}
