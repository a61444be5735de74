import { EconomicReadiness, READINESS_STAGES } from "@agent-relay/shared/contract/reports/economic-readiness.ts";
import { describe, expect, test } from "@jest/globals";
import { economicReadiness } from "../src/reports/economic-readiness.ts";
import { proofOf, SETTINGS, snapshotOf, WINDOWS } from "./snapshot.ts";

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
  ])("finds the blockers of the window %s", (name, blockers) => {
    expect(readiness(name).blockers.map(({ blocker }) => blocker)).toEqual(blockers);
  });

  test("is ready for a negotiation handoff to the last millisecond of freshness, and not one more", () => {
    expect(readiness("proofFresh").status).toBe("ready_for_negotiation_handoff");
    expect(readiness("proofStale").status).toBe("not_ready_for_negotiation_handoff");
    expect(readiness("empty").status).toBe("not_ready_for_negotiation_handoff");
  });

  test("knows stage by stage what is ready, and by which evidence", () => {
    expect(readiness("busy").stages.map(({ status, evidence }) => [status, evidence])).toEqual([
      ["ready", "20 agents online."],
      ["ready", "40 envelopes published."],
      ["ready", "Gateway session requests: 6 to online targets, 4 to others."],
      ["ready", "The online-target proof is fresh for 2 h 59 min more."],
      ["blocked", "1 proof kept in the process window alone."],
      ["outside_the_relay", "The relay coordinates and negotiates only; it holds no record of what follows."],
    ]);
    expect(readiness("busy").operator_quick_scan.headline).toBe("4 of 6 stages are ready.");
    expect(readiness("empty").stages[1]).toMatchObject({ status: "not_shown_yet", blockers: [] });
  });

  test("counts a websocket's online-target proof as negotiation", () => {
    const proof = proofOf({ source: "websocket_envelope" });
    const report = economicReadiness(snapshotOf({ proofs: [proof], lastOnlineProof: proof }), SETTINGS);
    expect(report.stages[2]).toMatchObject({ stage: "session_negotiation", status: "ready" });
  });
});
