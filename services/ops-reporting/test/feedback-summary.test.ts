import { describe, expect, test } from "@jest/globals";
import { FeedbackSummary } from "relay-protocol/contract/reports/checks.ts";
import {
  ACTIONABLE_CATEGORIES,
  BLOCKER_CATEGORIES,
  CATEGORIES,
  categoryOf,
  FeedbackRequest,
} from "relay-protocol/contract/requests.ts";
import { surfaceLabelOf } from "relay-protocol/contract/surfaces.ts";
import { feedbackSummary } from "../src/reports/feedback.ts";
import { numbersIn, proofOf, SETTINGS, sourceOf, WINDOWS } from "./report-sources.ts";

type WindowName = keyof typeof WINDOWS;

const summary = (counts: Record<string, number>) =>
  feedbackSummary(sourceOf({ feedback: new Map(Object.entries(counts)) }), SETTINGS);

const MIXED = summary({
  total: 20,
  message_provided: 7,
  "surface:checkOnline": 12,
  "surface:other": 8,
  "sentiment:blocked": 15,
  "sentiment:helpful": 5,
  "category:stale_presence": 4,
  "category:docs": 5,
  "category:connector_not_seen": 1,
  "category:smoke_check": 6,
  "category:deploy_check": 2,
  "category:other": 2,
});

describe("the feedback summary", () => {
  test.each(Object.keys(WINDOWS) as WindowName[])("has the shape of the contract in the window %s", (name) => {
    expect(FeedbackSummary.parse(feedbackSummary(WINDOWS[name], SETTINGS)).ok).toBe(true);
  });

  test("counts by surface, sentiment and category", () => {
    expect(MIXED.feedback).toMatchObject({
      total: 20,
      message_provided: 7,
      by_surface: { checkOnline: 12, other: 8 },
      by_sentiment: { blocked: 15, helpful: 5 },
      by_category: { stale_presence: 4, docs: 5, connector_not_seen: 1, smoke_check: 6, deploy_check: 2, other: 2 },
      connector_session_blocker_categories: {
        connector_not_seen: 1,
        stale_presence: 4,
        session_request_failed: 0,
        next_step_unclear: 0,
      },
    });
  });

  test("tells smoke and deploy checks apart from what asks for action", () => {
    expect(MIXED.feedback_actions).toMatchObject({
      actionable_total: 10,
      smoke_or_deploy_check_total: 8,
      top_categories: [
        { category: "docs", count: 5 },
        { category: "stale_presence", count: 4 },
        { category: "other", count: 2 },
        { category: "connector_not_seen", count: 1 },
      ],
    });
  });

  test("leads with the category counted most, checks and other never", () => {
    const { recommended_actions, leading_action } = MIXED.feedback_actions;
    expect(recommended_actions.map(({ category, count }) => [category, count])).toEqual([
      ["docs", 5],
      ["stale_presence", 4],
      ["connector_not_seen", 1],
    ]);
    expect(leading_action).toEqual(recommended_actions[0]);
    expect(leading_action?.url).toBe("https://relay.example/.well-known/signing-manifest.json");
    expect(numbersIn(leading_action?.evidence ?? "")).toEqual([5, 20]);
    const checksOnly = summary({ total: 9, "category:smoke_check": 8, "category:other": 1 }).feedback_actions;
    expect(checksOnly).toMatchObject({ actionable_total: 0, recommended_actions: [], leading_action: null });
  });

  test("settles a tie by the order of the categories", () => {
    const tie = summary({ total: 2, "category:docs": 1, "category:connector_not_seen": 1 });
    expect(tie.feedback_actions.leading_action?.category).toBe("connector_not_seen");
  });

  test.each([...ACTIONABLE_CATEGORIES])("has an action of its own for %s", (category) => {
    const all = Object.fromEntries(ACTIONABLE_CATEGORIES.map((label) => [`category:${label}`, 1]));
    const { leading_action } = summary({ ...all, [`category:${category}`]: 2 }).feedback_actions;
    expect(leading_action?.category).toBe(category);
    const { recommended_actions } = summary(all).feedback_actions;
    expect(recommended_actions.filter(({ action }) => action === leading_action?.action)).toHaveLength(1);
  });

  test("names the endpoints of the contract", () => {
    expect(MIXED).toMatchObject({
      endpoint: "/api/public/feedback-summary",
      endpoint_aliases: [
        "/api/public/feedback/summary",
        "/api/feedback/summary",
        "/api/ops/feedback-summary",
        "/api/ops/feedback",
      ],
      submit_method: "POST",
      submit_endpoint: "/api/public/feedback",
      submit_endpoint_aliases: ["/api/feedback"],
    });
    expect(MIXED.feedback_actions.policy.categories).toEqual([...CATEGORIES, "other"]);
    expect(Object.keys(MIXED.feedback.connector_session_blocker_categories)).toEqual([...BLOCKER_CATEGORIES]);
  });
});

describe("the suggested feedback of a blocked agent", () => {
  const notSeen = sourceOf({ proofs: [proofOf({ targetStatus: "not_seen" })] });
  const alone = { ...WINDOWS.proofStale, presence: sourceOf().presence };

  test.each([
    ["of a window without connectors", WINDOWS.empty, "connector_not_seen"],
    ["of stale connectors", WINDOWS.connectorsStale, "stale_presence"],
    ["before the first request", WINDOWS.connectorOnline, "next_step_unclear"],
    ["of stale targets", WINDOWS.offlineOnly, "stale_presence"],
    ["of targets never seen", notSeen, "connector_not_seen"],
    ["of a stale proof", WINDOWS.proofStale, "session_request_failed"],
    ["of a stale proof with nobody online", alone, "stale_presence"],
    ["of a fresh proof", WINDOWS.proofFresh, "durable_store_missing_or_not_written_yet"],
  ])("%s is a body ready to post, in its category", (_name, window, category) => {
    const { suggested_blocked_feedback } = feedbackSummary(window, SETTINGS);
    const body = FeedbackRequest.parse(suggested_blocked_feedback);
    expect(body).toMatchObject({ sentiment: "blocked", category });
    expect(categoryOf(body.category)).toBe(category);
    expect(surfaceLabelOf(body.surface)).toBe(body.surface);
  });
});
