import { describe, expect, test } from "@jest/globals";
import { EconomicReadiness, READINESS_STAGES } from "relay-protocol/contract/reports/checks.ts";
import { economicReadiness } from "../src/reports/economic-readiness.ts";
import { numbersIn, SETTINGS, sourceOf, WINDOWS } from "./report-sources.ts";

type WindowName = keyof typeof WINDOWS;

const readiness = (name: WindowName) => economicReadiness(WINDOWS[name], SETTINGS);
const NO_STORE = "missing_durable_session_proof_store";

describe("economic-readiness", () => {
  test.each(Object.keys(WINDOWS) as WindowName[])("has the shape of the contract in the window %s", (name) => {
    const report = EconomicReadiness.parse(readiness(name));
    expect(report.stages.map(({ stage }) => stage)).toEqual(READINESS_STAGES);
    expect(report).toMatchObject({
      durable_session_proof_store_configured: false,
      reputation_scores_exposed: false,
      verified_deal_reputation_policy: { status: "roadmap_metadata_only", reputation_scores_exposed: false },
    });
  });

  test.each<[WindowName, string[]]>([
    ["empty", ["no_connector_online", "no_session_request_accepted", "no_online_target_proof", NO_STORE]],
    ["connectorOnline", ["no_session_request_accepted", "no_online_target_proof", NO_STORE]],
    [
      "offlineOnly",
      ["no_connector_online", "session_requests_only_to_offline_targets", "no_online_target_proof", NO_STORE],
    ],
    ["proofStale", ["session_proof_stale", NO_STORE]],
    ["proofFresh", [NO_STORE]],
    ["proofFreshNobodyOnline", ["no_connector_online", NO_STORE]],
    ["webSocketsOnly", [NO_STORE]],
  ])("finds the blockers of the window %s", (name, blockers) => {
    expect(readiness(name).blockers.map(({ blocker }) => blocker)).toEqual(blockers);
  });

  test("is ready for a negotiation handoff to the last millisecond of freshness, and not one more", () => {
    expect(readiness("proofFresh").status).toBe("ready_for_negotiation_handoff");
    expect(readiness("proofStale").status).toBe("not_ready_for_negotiation_handoff");
    expect(readiness("empty").status).toBe("not_ready_for_negotiation_handoff");
  });

  test("knows stage by stage what is ready, and by which evidence", () => {
    expect(readiness("busy").stages.map(({ status, evidence }) => [status, numbersIn(evidence)])).toEqual([
      ["ready", [20]],
      ["ready", [30, 12]],
      ["ready", [10, 10, 0, 6]],
      ["ready", [2, 59]],
      ["blocked", [1]],
      ["outside_the_relay", []],
    ]);
    expect(numbersIn(readiness("busy").operator_quick_scan.headline)).toEqual([4, 6]);
    expect(readiness("empty").stages[1]).toMatchObject({ status: "not_shown_yet", blockers: [] });
  });

  test("calls message delivery ready only once a message found its target online; a session request is none", () => {
    const statusAfter = (published: number, reached: number) => {
      const counters = new Map([
        ["published_envelopes", published],
        ["published_to_offline_target", published - reached],
        ["session_requests", 1],
        ["session_requests_to_online_target", 1],
      ]);
      return economicReadiness(sourceOf({ counters }), SETTINGS).stages[1]?.status;
    };
    expect(statusAfter(1, 1)).toBe("not_shown_yet");
    expect(statusAfter(5, 1)).toBe("not_shown_yet");
    expect(statusAfter(5, 2)).toBe("ready");
  });

  test("shows session requests over websockets as the evidence that they are", () => {
    const { stages, evidence } = readiness("webSocketsOnly");
    expect(stages[2]).toMatchObject({ stage: "session_negotiation", status: "ready" });
    expect(numbersIn(stages[2]?.evidence as string)).toEqual([2, 0, 2, 1]);
    expect(evidence).toMatchObject({
      session_requests_accepted: 2,
      session_requests_accepted_over_websockets: 2,
      session_requests_accepted_to_online_target: 1,
    });
  });

  test.each(Object.keys(WINDOWS) as WindowName[])(
    "is ready in the window %s only when no stage up to the proof is blocked, and then nobody is sent anywhere else",
    (name) => {
      const { status, stages, current_bottleneck } = readiness(name);
      const isBlocked = stages.slice(0, 4).some((stage) => stage.status === "blocked");
      expect(status).toBe(isBlocked ? "not_ready_for_negotiation_handoff" : "ready_for_negotiation_handoff");
      expect(current_bottleneck === "none").toBe(!isBlocked);
    },
  );
});
