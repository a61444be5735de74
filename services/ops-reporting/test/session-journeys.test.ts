import { describe, expect, test } from "@jest/globals";
import { SessionJourneys, STAGE_OF_ACTION } from "relay-protocol/contract/reports/traffic.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Journey } from "relay-window/counters/journeys.ts";
import { sessionJourneys } from "../src/reports/session-journeys.ts";
import { numbersIn, SETTINGS, STARTED_AT, sourceOf } from "./report-sources.ts";

/** A journey of these actions, one a second. */
function journeyOf(...names: string[]): Journey {
  const actions = names.map((name, index) => ({ name, at: STARTED_AT + index * 1000 }));
  const lastSeen = STARTED_AT + (names.length - 1) * 1000;
  const stages = new Set(names.map((name) => STAGE_OF_ACTION[name] ?? "discovery"));
  return { firstSeen: STARTED_AT, lastSeen, count: names.length, stages, actions };
}

function shifted(journey: Journey, ms: number): Journey {
  const actions = journey.actions.map(({ name, at }) => ({ name, at: at + ms }));
  return { ...journey, firstSeen: journey.firstSeen + ms, lastSeen: journey.lastSeen + ms, actions };
}

const reportAt = (times: object, ...journeys: Journey[]) =>
  SessionJourneys.parse(JSON.parse(sessionJourneys(sourceOf({ journeys, visitors: 7, ...times }), SETTINGS)));
const reportOf = (...journeys: Journey[]) => reportAt({}, ...journeys);

const WHOLE_PATH = ["trafficDaily", "selfTest", "sendMessage", "requestSession", "submitFeedback"];

describe("session-journeys", () => {
  test("has the shape of the contract without any journey", () => {
    const report = reportOf();
    expect(report).toMatchObject({
      totals: { journeys: 0, events: 0, retained_actions: 0, completed: 0, unique_sessions: 7 },
      bounds: { max_journeys: 200, max_actions_per_journey: 50 },
      largest_drop_off: null,
      journeys: [],
    });
  });

  test("shows no time before the window began", () => {
    const [journey] = reportOf(journeyOf("trafficDaily", "selfTest")).journeys;
    expect(STARTED_AT % 60_000).toBeGreaterThan(0);
    expect(journey).toMatchObject({ first_seen: STARTED_AT, last_seen: STARTED_AT, idle_ms: 60_000 });
    expect(journey?.actions.map(({ at }) => at)).toEqual([STARTED_AT, STARTED_AT]);
  });

  test("shows a journey: its minutes, its actions in order, and how much there was", () => {
    const minute = STARTED_AT - (STARTED_AT % 60_000) + 60_000;
    const journey = { ...journeyOf("signingManifest", "selfTest", "checkOnline"), count: 70 };
    const later = { now: STARTED_AT + 180_000, windowStartedAt: STARTED_AT - 60_000 };
    expect(reportAt(later, shifted(journey, 60_000)).journeys).toEqual([
      {
        journey: 1,
        first_seen: minute,
        first_seen_iso: new Date(minute).toISOString(),
        last_seen: minute,
        last_seen_iso: new Date(minute).toISOString(),
        idle_ms: later.now - minute,
        event_count: 70,
        actions: [
          { action: "signingManifest", at: minute },
          { action: "selfTest", at: minute },
          { action: "checkOnline", at: minute },
        ],
        actions_truncated: true,
        drop_off: { stage: "connector_onboarding", next_stage: "message_delivery" },
        next_best_action: expect.stringContaining(SETTINGS.baseUrl + SURFACES.sendMessage.path),
      },
    ]);
  });

  test.each([
    [["trafficDaily"], "discovery", "connector_onboarding", "selfTest"],
    [["checkOnline"], "connector_onboarding", "message_delivery", "sendMessage"],
    [["sendMessage"], "message_delivery", "session_negotiation", "requestSession"],
    [["requestSession", "trafficDaily"], "session_negotiation", "feedback", "submitFeedback"],
    [["readSession"], "session_negotiation", "feedback", "submitFeedback"],
    [["submitFeedback"], "discovery", "connector_onboarding", "selfTest"],
    [["checkOnline", "submitFeedback"], "connector_onboarding", "message_delivery", "sendMessage"],
    [["surfaceOfAnOlderDeploy"], "discovery", "connector_onboarding", "selfTest"],
  ] as const)("a journey of %j stopped after %s, before %s: next is %s", (names, stage, next_stage, next) => {
    const [journey] = reportOf(journeyOf(...names)).journeys;
    expect(journey?.drop_off).toEqual({ stage, next_stage });
    expect(journey?.next_best_action).toContain(`POST ${SETTINGS.baseUrl}${SURFACES[next].path}`);
  });

  test("a journey that went the whole path, in whatever order, dropped off nowhere", () => {
    for (const names of [WHOLE_PATH, WHOLE_PATH.toReversed(), ["requestSession", "submitFeedback"]]) {
      const report = reportOf(journeyOf(...names));
      expect(report.journeys[0]?.drop_off).toBeNull();
      expect(report.totals.completed).toBe(1);
      expect(report.next_action).not.toContain(SETTINGS.baseUrl);
    }
  });

  test("a journey that completed stays so when its last 50 actions are reads", () => {
    const { stages } = journeyOf(...WHOLE_PATH);
    const report = reportOf({ ...journeyOf(...Array(50).fill("trafficDaily")), count: 55, stages });
    expect(report.totals.completed).toBe(1);
    expect(report.journeys[0]).toMatchObject({ drop_off: null, actions_truncated: true });
  });

  test("counts where journeys stopped, and advises on the largest, the earliest of equals", () => {
    const journeys = [["checkOnline"], ["sendMessage"], ["trafficDaily"], ["sendMessage"], ["selfTest"], WHOLE_PATH];
    const report = reportOf(...journeys.map((names) => journeyOf(...names)));
    expect(report.drop_offs.map(({ count }) => count)).toEqual([1, 2, 2, 0]);
    expect(report.largest_drop_off).toEqual({
      stage: "connector_onboarding",
      next_stage: "message_delivery",
      count: 2,
    });
    expect(numbersIn(report.next_action).slice(0, 2)).toEqual([2, 6]);
    expect(report.next_action).toContain(SETTINGS.baseUrl + SURFACES.sendMessage.path);
    expect(report.totals).toMatchObject({ journeys: 6, events: 10, retained_actions: 10, completed: 1 });
    expect(report.journeys.map(({ journey }) => journey)).toEqual([1, 2, 3, 4, 5, 6]);
  });
});
