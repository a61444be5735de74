import { z } from "zod";
import { ACTIONABLE_CATEGORIES, BLOCKER_CATEGORIES, CATEGORIES, OTHER, SENTIMENTS } from "../feedback-labels.ts";
import { Privacy } from "./common.ts";
import { Completeness } from "./window.ts";

/** GET /api/public/feedback-summary: feedback counted by label. Source: docs/reports.md#feedback. */

const Category = z.enum([...CATEGORIES, OTHER]);
const CategoryCount = { category: Category, count: z.int() };

export const RecommendedAction = z.strictObject({
  category: z.enum(ACTIONABLE_CATEGORIES),
  count: z.int(),
  action: z.string(),
  evidence: z.string(),
  url: z.string(),
});
export type RecommendedAction = z.infer<typeof RecommendedAction>;

export const FeedbackActions = z.strictObject({
  actionable_total: z.int().meta({ description: "Feedback in categories for which somebody has something to do." }),
  smoke_or_deploy_check_total: z.int().meta({ description: "Feedback sent by checks; it never leads to an action." }),
  top_categories: z.array(z.strictObject(CategoryCount)).meta({ description: "Highest count first, without checks." }),
  recommended_actions: z.array(RecommendedAction).meta({ description: "Category with the highest count first." }),
  leading_action: RecommendedAction.nullable(),
  policy: z.strictObject({
    categories: z.array(Category),
    sentiments: z.array(z.enum([...SENTIMENTS, OTHER])),
    unlisted_labels_count_as: z.literal(OTHER),
    raw_message_stored: z.literal(false),
    note: z.string(),
  }),
  privacy: Privacy,
});
export type FeedbackActions = z.infer<typeof FeedbackActions>;

export const FeedbackSummary = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  endpoint_aliases: z.array(z.string()),
  submit_method: z.literal("POST"),
  submit_endpoint: z.string(),
  submit_endpoint_aliases: z.array(z.string()),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  feedback: z.strictObject({
    total: z.int(),
    message_provided: z.int(),
    by_surface: z.record(z.string(), z.int()),
    by_sentiment: z.record(z.string(), z.int()),
    by_category: z.record(z.string(), z.int()),
    connector_session_blocker_categories: z.record(z.enum(BLOCKER_CATEGORIES), z.int()),
    note: z.string(),
  }),
  feedback_actions: FeedbackActions,
  suggested_blocked_feedback: z
    .strictObject({ surface: z.string(), sentiment: z.literal("blocked"), category: z.enum(ACTIONABLE_CATEGORIES) })
    .meta({ description: "A body for submit_endpoint that reports what blocks an agent in this window." }),
  privacy: Privacy,
});
export type FeedbackSummary = z.infer<typeof FeedbackSummary>;
