import { describe, expect, test } from "@jest/globals";
import { ActivationFunnel, STAGES } from "relay-protocol/contract/reports/traffic.ts";
import { activationFunnel } from "../src/reports/activation.ts";
import { numbersIn, SETTINGS, sourceOf, WINDOWS } from "./report-sources.ts";

type WindowName = keyof typeof WINDOWS;

const funnel = (name: WindowName) => activationFunnel(WINDOWS[name], SETTINGS);

/** A window whose stages count what is given. */
function counting(visitors: number, agents: number, messages: number, requests: number, feedback: number) {
  return sourceOf({
    visitors,
    presence: { ok: agents, stale: 0, critical_stale: 0, offline: 0 },
    counters: new Map([
      ["published_envelopes", messages + requests],
      ["session_requests", requests],
      ["simple_session_request_accepted", requests],
    ]),
    feedback: new Map([["total", feedback]]),
  });
}

describe("activation-funnel", () => {
  test("counts session requests of websockets beside the gateway's", () => {
    const counters = new Map([
      ["published_envelopes", 5],
      ["session_requests", 3],
      ["simple_session_request_accepted", 1],
    ]);
    const stages = activationFunnel(sourceOf({ counters }), SETTINGS).stages;
    expect(stages.map(({ stage, count }) => [stage, count])).toContainEqual(["message_delivery", 2]);
    const negotiation = stages.find(({ stage }) => stage === "session_negotiation");
    expect(negotiation?.count).toBe(3);
    expect(numbersIn(negotiation?.evidence ?? "")).toEqual([1, 2]);
  });

  test.each(Object.keys(WINDOWS) as WindowName[])("has the shape of the contract in the window %s", (name) => {
    const { stages } = ActivationFunnel.parse(funnel(name));
    expect(stages.map(({ stage }) => stage)).toEqual(STAGES);
  });

  test("shows what comes through each stage", () => {
    const figures = funnel("busy").stages.map((stage) => [
      stage.status,
      stage.count,
      stage.previous_stage,
      stage.dropoff_from_previous,
      stage.conversion_rate_from_previous,
    ]);
    expect(figures).toEqual([
      ["active", 100, null, null, null],
      ["online", 60, "discovery", 40, 0.6],
      ["active", 30, "connector_onboarding", 30, 0.5],
      ["active", 10, "message_delivery", 20, 1 / 3],
      ["active", 2, "session_negotiation", 8, 0.2],
    ]);
  });

  test("shows the figures behind the count of each stage", () => {
    expect(funnel("busy").stages.map(({ evidence }) => numbersIn(evidence))).toEqual([
      [900],
      [20, 30, 10],
      [40, 10],
      [10, 0],
      [5, 3],
    ]);
  });

  test("lists the dropoff between every two stages", () => {
    const { dropoffs } = funnel("busy");
    expect(dropoffs[0]).toEqual({
      from: "discovery",
      to: "connector_onboarding",
      previous_count: 100,
      current_count: 60,
      dropoff_count: 40,
      conversion_rate: 0.6,
      status: "dropoff",
    });
    expect(dropoffs.map(({ from, to }) => [from, to])).toEqual(
      STAGES.slice(1).map((stage, index) => [STAGES[index], stage]),
    );
  });

  test("tells no traffic, a blocked stage, a dropoff and none apart", () => {
    const { dropoffs } = activationFunnel(counting(0, 5, 0, 3, 2), SETTINGS);
    expect(dropoffs.map(({ status }) => status)).toEqual(["no_traffic", "blocked", "no_traffic", "dropoff"]);
    expect(activationFunnel(counting(1, 2, 2, 2, 3), SETTINGS).dropoffs.map(({ status }) => status)).toEqual(
      Array(4).fill("no_dropoff"),
    );
  });

  test("has a rate between 0 and 1 wherever there is something to compare, null where there is not", () => {
    const rates = (...counts: Parameters<typeof counting>) =>
      activationFunnel(counting(...counts), SETTINGS).dropoffs.map(({ conversion_rate }) => conversion_rate);
    expect(rates(0, 5, 0, 3, 9)).toEqual([null, 0, null, 1]);
    expect(rates(4, 3, 3, 30, 0)).toEqual([0.75, 1, 1, 0]);
  });

  test.each<[string, Parameters<typeof counting>, string | null]>([
    ["discovery", [9, 1, 1, 1, 1], "connector_onboarding"],
    ["onboarding", [9, 9, 1, 1, 1], "message_delivery"],
    ["delivery", [9, 9, 9, 1, 1], "session_negotiation"],
    ["negotiation", [9, 9, 9, 9, 1], "feedback"],
    ["the first of two stages alike", [9, 6, 3, 3, 3], "connector_onboarding"],
    ["no stage", [0, 1, 1, 1, 1], null],
  ])("finds the largest dropoff after %s", (_name, counts, to) => {
    expect(activationFunnel(counting(...counts), SETTINGS).largest_current_dropoff?.to ?? null).toBe(to);
  });

  test.each(Object.keys(WINDOWS) as WindowName[])("gives one next step in the window %s", (name) => {
    const { next_action, recommended_next_step, operator_quick_scan } = funnel(name);
    expect([next_action, recommended_next_step.action]).toEqual(Array(2).fill(operator_quick_scan.next_action));
  });

  test.each<[WindowName, string, string]>([
    ["empty", "no_connector_online", "/api/public/activation-plan"],
    ["connectorOnline", "no_session_request_accepted", "/api/public/session-request-guide"],
    ["offlineOnly", "session_requests_only_to_offline_targets", "/api/public/session-request-guide"],
    ["proofStale", "session_proof_stale", "/api/public/session-request-refresh-packet"],
    ["proofFresh", "none", "/api/public/marketplace-handoff-status"],
  ])("recommends in the window %s the guide past %s", (name, bottleneck, path) => {
    const { recommended_next_step, operator_quick_scan } = funnel(name);
    expect(recommended_next_step).toEqual({
      bottleneck,
      action: operator_quick_scan.next_action,
      method: "GET",
      url: SETTINGS.baseUrl + path,
    });
  });

  test.each<[WindowName, number[], number | null, string | null]>([
    ["empty", [], null, null],
    ["offlineOnly", [0, 5], 0, null],
    ["busy", [6, 10], 0.6, "docs"],
  ])("shows for the window %s how many session requests had an online target", (name, figures, rate, leading) => {
    const insight = funnel(name).product_insight;
    expect(numbersIn(insight.summary)).toEqual(figures);
    expect(insight).toMatchObject({ online_target_rate: rate, leading_feedback_category: leading });
  });

  test("calls onboarding active when agents were seen and none is online", () => {
    expect(funnel("connectorsStale").stages[1]).toMatchObject({ status: "active", count: 7 });
    expect(funnel("empty").stages.map(({ status }) => status)).toEqual(Array(5).fill("idle"));
  });
});
