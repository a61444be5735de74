import type { FeedbackActions, FeedbackSummary, RecommendedAction } from "relay-protocol/contract/reports/checks.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import {
  ACTIONABLE_CATEGORIES,
  type ActionableCategory,
  type BlockerCategory,
  CATEGORIES,
  OTHER,
  SENTIMENTS,
} from "relay-protocol/contract/requests.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import type { Counts } from "relay-window/counters/snapshot.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { activationOf } from "./activation.ts";
import { blockerCounts, checksTotal, completenessOf, countsByLabel, mostCounted } from "./figures.ts";

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

/** What to do about a category, and the surface to begin with. */
const ACTIONS: Readonly<Record<ActionableCategory, { readonly action: string; readonly surface: Surface }>> = {
  connector_not_seen: {
    action: "Check that connectors register: have a signature tested, then watch the count of online agents.",
    surface: SURFACES.selfTestGuide,
  },
  stale_presence: {
    action: "Have connectors send a heartbeat every 15 seconds (at most 30) and reconnect after a close.",
    surface: SURFACES.onlineAgents,
  },
  session_request_failed: {
    action: "Compare the requests accepted to online and to offline targets; have targets checked before a request.",
    surface: SURFACES.sessionProofRetention,
  },
  next_step_unclear: {
    action: "Follow the next step that the funnel recommends, and describe it more clearly in the guides.",
    surface: SURFACES.activationFunnel,
  },
  session_request_auth_needed: {
    action: "Give the sender an API key for its agent id; only the relay's operator can.",
    surface: SURFACES.sessionRequestGuide,
  },
  docs: {
    action: "Read the signing documents as a newcomer would, and correct what misleads.",
    surface: SURFACES.signingManifest,
  },
  spam_offer_or_abuse: {
    action:
      "See which key is refused most (relay_key_refusals_total on the operator's metrics port) and revoke it; the relay stores no contents.",
    surface: SURFACES.trafficDaily,
  },
  durable_store_missing_or_not_written_yet: {
    action: "Tell agents that proofs end with the process window: no durable store is configured.",
    surface: SURFACES.restartSurvivalCheck,
  },
};

/** What to do about the feedback, the largest count first; smoke and deploy checks need no action. Pure. */
export function feedbackActions(feedback: Counts, baseUrl: string): FeedbackActions {
  const total = feedback.get("total") ?? 0;
  const actionable = mostCounted(feedback, ACTIONABLE_CATEGORIES);
  const recommended = actionable.map(({ category, count }): RecommendedAction => {
    const { action, surface } = ACTIONS[category];
    const evidence = `${count} of ${total} feedback entries in this window.`;
    return { category, count, action, evidence, url: baseUrl + surface.path };
  });
  return {
    actionable_total: actionable.reduce((sum, { count }) => sum + count, 0),
    smoke_or_deploy_check_total: checksTotal(feedback),
    top_categories: mostCounted(feedback, [...ACTIONABLE_CATEGORIES, OTHER]),
    recommended_actions: recommended,
    leading_action: recommended[0] ?? null,
    policy: {
      categories: [...CATEGORIES, OTHER],
      sentiments: [...SENTIMENTS, OTHER],
      unlisted_labels_count_as: OTHER,
      raw_message_stored: false,
      note: "Smoke checks, deploy checks and the category other are counted and need no action.",
    },
    privacy: PRIVACY,
  };
}
