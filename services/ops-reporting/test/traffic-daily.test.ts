import { TrafficDaily } from "@agent-relay/shared/contract/reports.ts";
import { describe, expect, test } from "@jest/globals";
import { trafficDaily } from "../src/reports/traffic-daily.ts";
import { FRESHNESS_MS, proofOf, STARTED_AT, snapshotOf } from "./snapshot.ts";

const BUSY = snapshotOf({
  counters: new Map([
    ["websocket_accepted", 100],
    ["published_envelopes", 70],
    ["simple_send_accepted", 20],
    ["simple_session_request_accepted", 9],
    ["simple_session_request_accepted_to_online_target", 4],
    ["simple_session_request_accepted_to_offline_target", 5],
  ]),
  traffic: new Map([
    ["surface_views", 1000],
    ["onboarding_checks", 300],
    ["self_test_passed", 7],
  ]),
  surfaces: new Map([
    ["selfTestGuide", 200],
    ["checkOnline", 600],
    ["onlineAgents", 200],
    ["surfaceOfAnOlderDeploy", 999],
  ]),
  feedback: new Map([
    ["total", 3],
    ["sentiment:blocked", 3],
  ]),
  visitors: 42,
});

describe("traffic-daily", () => {
  test("has the shape of the contract, in a window without traffic too", () => {
    expect(TrafficDaily.parse(trafficDaily(BUSY, FRESHNESS_MS))).toMatchObject({ ok: true, service: "agent-relay" });
    const { totals } = TrafficDaily.parse(trafficDaily(snapshotOf(), FRESHNESS_MS));
    expect(new Set(Object.values(totals))).toEqual(new Set([0]));
  });

  test("adds up every counted event once", () => {
    expect(trafficDaily(BUSY, FRESHNESS_MS).totals).toEqual({
      total_events: 1000 + 300 + 7 + 100 + 70 + 20 + 9 + 3,
      unique_sessions: 42,
      surface_views: 1000,
      onboarding_checks: 300,
      websocket_accepted: 100,
      published_envelopes: 70,
      simple_send_accepted: 20,
      simple_session_request_accepted: 9,
      simple_session_request_accepted_to_online_target: 4,
      simple_session_request_accepted_to_offline_target: 5,
      feedback_total: 3,
    });
  });

  test("names every counter in full", () => {
    expect(trafficDaily(BUSY, FRESHNESS_MS).monitors).toEqual({
      "traffic.simple_send.accepted": 20,
      "traffic.simple_session_request.accepted": 9,
      "traffic.simple_session_request.accepted_to_online_target": 4,
      "traffic.simple_session_request.accepted_to_offline_target": 5,
      simple_session_request_accepted_to_offline_target: 5,
      published_envelopes: 70,
      websocket_accepted: 100,
      "traffic.self_test.passed": 7,
      feedback_total: 3,
    });
  });

  test("lists surfaces of the catalogue alone, most viewed first", () => {
    expect(trafficDaily(BUSY, FRESHNESS_MS).top_surfaces).toEqual([
      { name: "checkOnline", count: 600 },
      { name: "onlineAgents", count: 200 },
      { name: "selfTestGuide", count: 200 },
    ]);
  });

  test("says that nothing is durable", () => {
    expect(trafficDaily(BUSY, FRESHNESS_MS).durable_window.durable_session_proof_store_configured).toBe(false);
  });
});

describe("a session proof", () => {
  const recordAt = (now: number, changes = {}) =>
    trafficDaily(snapshotOf({ now, proofs: [proofOf(changes)] }), FRESHNESS_MS).recent_session_proofs[0];

  test("is fresh through the last millisecond of its window, and not one more", () => {
    const end = STARTED_AT + FRESHNESS_MS;
    expect(recordAt(end)).toEqual({
      session_id: "ses_00abcdefghjkmnpqrstvwxyz01",
      requester: "agent://alice",
      target: "agent://bob",
      accepted_at: STARTED_AT,
      accepted_at_iso: new Date(STARTED_AT).toISOString(),
      target_status: "online",
      can_deliver_realtime: true,
      proof_age_ms: FRESHNESS_MS,
      proof_expires_at: end,
      proof_expires_at_iso: new Date(end).toISOString(),
      refresh_required_before_handoff: false,
      process_window_handoff_safety: "fresh_for_negotiation_handoff",
      source: "simple_session_api",
      durable_source: null,
      process_window_started_at: STARTED_AT,
      retained_from_durable_store: false,
    });
    expect(recordAt(end + 1)).toMatchObject({
      refresh_required_before_handoff: true,
      process_window_handoff_safety: "refresh_required_before_negotiation_handoff",
    });
  });

  test.each(["stale", "not_seen"] as const)("of a %s target carries no handoff", (targetStatus) => {
    expect(recordAt(STARTED_AT, { targetStatus })).toMatchObject({
      target_status: targetStatus,
      can_deliver_realtime: false,
      refresh_required_before_handoff: true,
    });
  });
});
