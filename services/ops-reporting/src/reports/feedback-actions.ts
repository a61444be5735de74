import {
  ACTIONABLE_CATEGORIES,
  type ActionableCategory,
  CATEGORIES,
  OTHER,
  SENTIMENTS,
} from "@agent-relay/shared/contract/feedback-labels.ts";
import { PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import type { FeedbackActions, RecommendedAction } from "@agent-relay/shared/contract/reports/feedback-summary.ts";
import type { Surface } from "@agent-relay/shared/contract/surface.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import type { Counts } from "@agent-relay/shared/window/snapshot.ts";
import { checksTotal, mostCounted } from "./feedback-counts.ts";

/** What a category asks for, and the surface to begin with. */
const ACTIONS: Readonly<Record<ActionableCategory, { readonly action: string; readonly surface: Surface }>> = {
  connector_not_seen: {
    action: "Look whether connectors register: have a signature tested, then watch the count of online agents.",
    surface: SURFACES.selfTestGuide,
  },
  stale_presence: {
    action: "Have connectors send a heartbeat every 15 seconds, 30 at most, and reconnect after a close.",
    surface: SURFACES.onlineAgents,
  },
  session_request_failed: {
    action: "Compare requests accepted to online and to offline targets; have targets checked before a request.",
    surface: SURFACES.sessionProofRetention,
  },
  next_step_unclear: {
    action: "Follow the next step that the funnel recommends, and say it more plainly where agents look.",
    surface: SURFACES.activationFunnel,
  },
  session_request_auth_needed: {
    action: "Give the sender an API key for its agent id; only the relay's operator can.",
    surface: SURFACES.sessionRequestGuide,
  },
  docs: {
    action: "Read the signing documents as a newcomer would, and mend what misleads.",
    surface: SURFACES.signingManifest,
  },
  spam_offer_or_abuse: {
    action: "Learn the sender from those who report it, and revoke its keys; the relay keeps no contents.",
    surface: SURFACES.trafficDaily,
  },
  durable_store_missing_or_not_written_yet: {
    action: "Tell agents that proofs end with the window: no durable store is configured.",
    surface: SURFACES.restartSurvivalCheck,
  },
};

/** What feedback asks for, most counted first; checks ask for nothing. Pure. */
export function feedbackActions(feedback: Counts, baseUrl: string): FeedbackActions {
  const total = feedback.get("total") ?? 0;
  const actionable = mostCounted(feedback, ACTIONABLE_CATEGORIES);
  const recommended = actionable.map(({ category, count }): RecommendedAction => {
    const { action, surface } = ACTIONS[category];
    const evidence = `${count} of ${total} feedbacks in this window.`;
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
      note: "Smoke and deploy checks, and the category other, are counted and ask for no action.",
    },
    privacy: PRIVACY,
  };
}
