import type { FeedbackActions, RecommendedAction } from "relay-protocol/contract/reports/checks.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import {
  ACTIONABLE_CATEGORIES,
  type ActionableCategory,
  CATEGORIES,
  OTHER,
  SENTIMENTS,
} from "relay-protocol/contract/requests.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Counts } from "relay-window/counters/snapshot.ts";
import { checksTotal, mostCounted } from "./feedback-counts.ts";

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
