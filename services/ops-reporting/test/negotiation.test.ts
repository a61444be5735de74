import { describe, expect, test } from "@jest/globals";
import { negotiationOf, quickScan } from "../src/reports/negotiation.ts";
import { proofOf, SETTINGS, snapshotOf, WINDOWS } from "./snapshot.ts";

type WindowName = keyof typeof WINDOWS;

describe("the judgement on session proofs", () => {
  test.each<[WindowName, string, string, RegExp]>([
    ["empty", "waiting_for_connector", "no_connector_online", /^No agent was seen in this window/],
    ["connectorsStale", "waiting_for_connector", "no_connector_online", /^No agent is online/],
    ["connectorOnline", "waiting_for_session_request", "no_session_request_accepted", /then request a session\.$/],
    [
      "offlineOnly",
      "waiting_for_online_target",
      "session_requests_only_to_offline_targets",
      /^5 session requests accepted, none to an online target\. No agent is online/,
    ],
    [
      "proofStale",
      "proof_stale_refresh_due",
      "session_proof_stale",
      /^The last proof expired 1 ms ago; refresh it\. Check your target/,
    ],
    ["proofFresh", "proof_fresh", "missing_durable_session_proof_store", /for 0 ms more/],
    ["busy", "proof_fresh", "missing_durable_session_proof_store", /for 2 h 59 min more/],
  ])("of the window %s is %s, held back by %s", (name, activation, bottleneck, nextAction) => {
    const negotiation = negotiationOf(WINDOWS[name], SETTINGS);
    expect(negotiation).toMatchObject({ activation, bottleneck });
    expect(negotiation.nextAction).toMatch(nextAction);
  });

  test("goes by proofs of websocket requests too, which the gateway's counters do not know", () => {
    const proof = proofOf({ source: "websocket_envelope" });
    expect(negotiationOf(snapshotOf({ proofs: [proof], lastOnlineProof: proof }), SETTINGS).activation).toBe(
      "proof_fresh",
    );
    const offline = proofOf({ source: "websocket_envelope", targetStatus: "not_seen" });
    expect(negotiationOf(snapshotOf({ proofs: [offline] }), SETTINGS)).toMatchObject({
      activation: "waiting_for_online_target",
      nextAction: expect.stringMatching(/^1 session request accepted/),
    });
  });

  test("asks for a connector first when the proof is stale and nobody is online", () => {
    const alone = { ...WINDOWS.proofStale, presence: { ok: 0, stale: 0, critical_stale: 0, offline: 1 } };
    expect(negotiationOf(alone, SETTINGS).nextAction).toMatch(/refresh it\. No agent is online/);
  });

  test("stands in every operator's first look, with its figures", () => {
    expect(quickScan(WINDOWS.busy, SETTINGS, "Headline.")).toEqual({
      headline: "Headline.",
      online_agents: 20,
      stale_agents: 30,
      simple_session_request_accepted: 10,
      accepted_to_online_target: 6,
      accepted_to_offline_target: 4,
      proof_freshness: "fresh",
      refresh_urgency: "fresh_no_refresh_due",
      ms_until_refresh_due: 10_740_000,
      current_bottleneck: "missing_durable_session_proof_store",
      next_action: negotiationOf(WINDOWS.busy, SETTINGS).nextAction,
    });
  });
});
