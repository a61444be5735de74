import { describe, expect, test } from "@jest/globals";
import { fleetAdvice } from "relay-window/window/readiness.ts";
import { activationOf, operatorQuickScan } from "../src/reports/activation.ts";
import { numbersIn, proofOf, SETTINGS, sourceOf, WINDOWS } from "./report-sources.ts";

type WindowName = keyof typeof WINDOWS;

describe("the activation", () => {
  test.each<[WindowName, string, string]>([
    ["empty", "waiting_for_connector", "no_connector_online"],
    ["connectorsStale", "waiting_for_connector", "no_connector_online"],
    ["connectorOnline", "waiting_for_session_request", "no_session_request_accepted"],
    ["offlineOnly", "waiting_for_online_target", "session_requests_only_to_offline_targets"],
    ["proofStale", "proof_stale_refresh_due", "session_proof_stale"],
    ["proofFresh", "proof_fresh", "none"],
    ["busy", "proof_fresh", "none"],
    ["proofFreshNobodyOnline", "proof_fresh", "no_connector_online"],
    ["webSocketsOnly", "proof_fresh", "none"],
  ])("of the window %s is %s, with the bottleneck %s", (name, status, bottleneck) => {
    expect(activationOf(WINDOWS[name], SETTINGS)).toMatchObject({ status, bottleneck });
  });

  test.each<[WindowName, number[]]>([
    ["offlineOnly", [5]],
    ["proofStale", [1]],
    ["proofFresh", [0]],
    ["busy", [2, 59]],
  ])(
    "tells in the window %s how many requests were accepted, or since when or how long the proof permits a handoff",
    (name, figures) => {
      const { nextAction } = activationOf(WINDOWS[name], SETTINGS);
      expect(numbersIn(nextAction).slice(0, figures.length)).toEqual(figures);
    },
  );

  const WAITING = ["empty", "connectorsStale", "connectorOnline", "offlineOnly", "proofStale"] as const;
  test.each<WindowName>([...WAITING, "proofFreshNobodyOnline"])(
    "advises in the window %s what its connectors need",
    (name) => {
      expect(activationOf(WINDOWS[name], SETTINGS).nextAction).toContain(
        fleetAdvice(WINDOWS[name].presence, WINDOWS[name]),
      );
    },
  );

  test("goes by proofs of websocket requests too, which the gateway's counters do not know", () => {
    const proof = proofOf({ source: "websocket_envelope" });
    expect(activationOf(sourceOf({ proofs: [proof], lastOnlineProof: proof }), SETTINGS).status).toBe("proof_fresh");
    const offline = proofOf({ source: "websocket_envelope", targetStatus: "not_seen" });
    const { status, nextAction } = activationOf(sourceOf({ proofs: [offline] }), SETTINGS);
    expect({ status, requests: numbersIn(nextAction)[0] }).toEqual({
      status: "waiting_for_online_target",
      requests: 1,
    });
  });

  test("asks for a connector first when the proof is stale and nobody is online", () => {
    const alone = { ...WINDOWS.proofStale, presence: { ok: 0, stale: 0, critical_stale: 0, offline: 1 } };
    expect(activationOf(alone, SETTINGS).nextAction).toContain(fleetAdvice(alone.presence, alone));
  });

  test("is part of the operator's quick scan, with the figures", () => {
    expect(operatorQuickScan(WINDOWS.busy, SETTINGS, "Headline.")).toEqual({
      headline: "Headline.",
      online_agents: 20,
      stale_agents: 30,
      simple_session_request_accepted: 10,
      accepted_to_online_target: 6,
      accepted_to_offline_target: 4,
      proof_freshness: "fresh",
      refresh_urgency: "fresh_no_refresh_due",
      ms_until_refresh_due: 10_740_000,
      current_bottleneck: "none",
      next_action: activationOf(WINDOWS.busy, SETTINGS).nextAction,
    });
  });
});
