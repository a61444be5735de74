import { describe, expect, test } from "@jest/globals";
import { TrafficDaily } from "relay-protocol/contract/reports/traffic.ts";
import { trafficDaily } from "../src/reports/traffic-daily.ts";
import { FRESHNESS_MS, numbersIn, proofOf, SETTINGS, STARTED_AT, sourceOf, WINDOWS } from "./report-sources.ts";

const BUSY = sourceOf({
  counters: new Map([
    ["websocket_accepted", 100],
    ["published_envelopes", 70],
    ["published_to_offline_target", 20],
    ["simple_send_accepted", 20],
    ["session_requests", 12],
    ["session_requests_to_online_target", 6],
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
    expect(TrafficDaily.parse(trafficDaily(BUSY, SETTINGS))).toMatchObject({ ok: true, service: "agent-relay" });
    const { totals } = TrafficDaily.parse(trafficDaily(sourceOf(), SETTINGS));
    expect(new Set(Object.values(totals))).toEqual(new Set([0]));
  });

  test("adds up every counted event once", () => {
    expect(trafficDaily(BUSY, SETTINGS).totals).toEqual({
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

  test("shows the envelopes of the last hour by minute, in order of time, under its former name also", () => {
    const minute = Math.floor(STARTED_AT / 60_000);
    const minutes = new Map([
      [String(minute + 2), 5],
      [String(minute), 7],
    ]);
    const now = (minute + 2) * 60_000;
    const { current_window } = trafficDaily(sourceOf({ minutes, now }), SETTINGS);
    expect(current_window.published_envelopes_by_minute).toHaveLength(60);
    expect(current_window.published_envelopes_by_minute.slice(-3)).toEqual([
      { minute_started_at: minute * 60_000, count: 7 },
      { minute_started_at: (minute + 1) * 60_000, count: 0 },
      { minute_started_at: (minute + 2) * 60_000, count: 5 },
    ]);
    expect(current_window.accepted_by_minute).toEqual([
      { minute_start: minute * 60_000, count: 7 },
      { minute_start: (minute + 2) * 60_000, count: 5 },
    ]);
    expect(trafficDaily(sourceOf(), SETTINGS).current_window.accepted_by_minute).toEqual([]);
  });

  test("names every counter in full", () => {
    expect(trafficDaily(BUSY, SETTINGS).monitors).toEqual({
      "traffic.simple_send.accepted": 20,
      "traffic.simple_session_request.accepted": 9,
      "traffic.simple_session_request.accepted_to_online_target": 4,
      "traffic.simple_session_request.accepted_to_offline_target": 5,
      simple_session_request_accepted_to_offline_target: 5,
      session_requests_accepted: 12,
      session_requests_accepted_to_online_target: 6,
      published_envelopes: 70,
      published_to_online_target: 50,
      websocket_accepted: 100,
      "traffic.self_test.passed": 7,
      feedback_total: 3,
    });
  });

  test("lists surfaces of the catalogue alone, most viewed first", () => {
    expect(trafficDaily(BUSY, SETTINGS).top_surfaces).toEqual([
      { name: "checkOnline", count: 600 },
      { name: "onlineAgents", count: 200 },
      { name: "selfTestGuide", count: 200 },
    ]);
  });

  test("sums up the funnel, the journeys and the retention, with links to them", () => {
    const report = trafficDaily(WINDOWS.busy, SETTINGS);
    expect(report.funnel).toMatchObject({
      stages: [
        { stage: "discovery", status: "active", count: 100 },
        { stage: "connector_onboarding", status: "online", count: 60 },
        { stage: "message_delivery", status: "active", count: 30 },
        { stage: "session_negotiation", status: "active", count: 10 },
        { stage: "feedback", status: "active", count: 2 },
      ],
      largest_current_dropoff: { from: "discovery", to: "connector_onboarding", dropoff_count: 40 },
      next_action: report.operator_quick_scan.next_action,
      url: "https://relay.example/api/ops/activation-funnel",
    });
    expect(report.session_journeys).toMatchObject({
      totals: { journeys: 0, unique_sessions: 100 },
      bounds: { max_journeys: 200, max_actions_per_journey: 50 },
      url: "https://relay.example/api/ops/session-journeys",
    });
    expect(report.session_proof_retention).toMatchObject({
      status: "process_memory_only_not_durable",
      retained_process_window_proofs: 1,
      retained_durable_proofs: 0,
      proof_freshness: "fresh",
      url: "https://relay.example/api/ops/session-proof-retention",
    });
  });

  test("tells when the window began and how old it is", () => {
    expect(trafficDaily(WINDOWS.busy, SETTINGS).current_window).toEqual({
      scope: "process_window",
      published_envelopes_by_minute: expect.any(Array),
      accepted_by_minute: [],
      window_started_at: STARTED_AT,
      window_started_at_iso: new Date(STARTED_AT).toISOString(),
      window_age_ms: 60_000,
      retention_limit: 25,
      simple_session_request_accepted: 10,
      accepted_to_online_target: 6,
      accepted_to_offline_target: 4,
      retained_process_window_proofs: 1,
      retained_durable_proofs: 0,
    });
  });

  test("begins the operator's quick scan with the events and visitors", () => {
    expect(numbersIn(trafficDaily(BUSY, SETTINGS).operator_quick_scan.headline)).toEqual([1509, 42]);
  });

  test("says that nothing is durable", () => {
    expect(trafficDaily(BUSY, SETTINGS).durable_window.durable_session_proof_store_configured).toBe(false);
  });
});

describe("a session proof", () => {
  const recordAt = (now: number, changes = {}) =>
    trafficDaily(sourceOf({ now, proofs: [proofOf(changes)] }), SETTINGS).recent_session_proofs[0];

  test("is fresh through the last millisecond of its window, and not one more", () => {
    const end = STARTED_AT + FRESHNESS_MS;
    expect(recordAt(end)).toEqual({
      session_id: "ses_00abcdefghjkmnpqrstvwxyz01",
      same_principal: false,
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
