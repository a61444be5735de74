import { describe, expect, test } from "@jest/globals";
import { SessionProofRetention } from "relay-protocol/contract/reports/traffic.ts";
import { sessionProofRetention } from "../src/reports/session-proof-retention.ts";
import { FRESHNESS_MS, numbersIn, proofOf, SETTINGS, STARTED_AT, sourceOf, WINDOWS } from "./report-sources.ts";

type WindowName = keyof typeof WINDOWS;
const NAMES = Object.keys(WINDOWS) as WindowName[];
const END = STARTED_AT + FRESHNESS_MS;

const retention = (name: WindowName) => sessionProofRetention(WINDOWS[name], SETTINGS);

describe("session-proof-retention", () => {
  test.each(NAMES)("has the shape of the contract in the window %s", (name) => {
    expect(SessionProofRetention.parse(retention(name))).toMatchObject({
      status: "process_memory_only_not_durable",
      durable_session_proof_store_configured: false,
      reputation_scores_exposed: false,
      retained_durable_proofs: 0,
    });
  });

  test("permits a handoff through the last millisecond of freshness", () => {
    expect(retention("proofFresh")).toMatchObject({
      proof_freshness: "fresh",
      important_handoff_permitted_from_process_window: true,
      refresh_before_important_handoff: false,
      refresh_urgency: "fresh_no_refresh_due",
      proof_freshness_window_ms: FRESHNESS_MS,
      proof_freshness_expires_at: END,
      proof_freshness_expires_at_iso: new Date(END).toISOString(),
      ms_until_refresh_due: 0,
      stale_by_ms: 0,
      latest_online_target_proof_at: STARTED_AT,
      latest_online_target_proof_at_iso: new Date(STARTED_AT).toISOString(),
      activation_check: { process_window_passed: true },
    });
  });

  test("asks for a refresh from the millisecond after", () => {
    expect(retention("proofStale")).toMatchObject({
      proof_freshness: "stale_refresh_due",
      important_handoff_permitted_from_process_window: false,
      refresh_before_important_handoff: true,
      refresh_urgency: "expired_refresh_now",
      ms_until_refresh_due: -1,
      stale_by_ms: 1,
      activation_check: { process_window_passed: false },
    });
    expect(numbersIn(retention("proofStale").operator_quick_scan.headline)).toEqual([1]);
  });

  test("has nulls where there is no proof, and permits nothing", () => {
    expect(retention("offlineOnly")).toMatchObject({
      proof_freshness: "none",
      important_handoff_permitted_from_process_window: false,
      refresh_before_important_handoff: true,
      refresh_urgency: "no_proof_request_now",
      proof_freshness_expires_at: null,
      proof_freshness_expires_at_iso: null,
      ms_until_refresh_due: null,
      stale_by_ms: null,
      latest_online_target_proof_at: null,
      latest_online_target_proof_at_iso: null,
      accepted_to_online_target: 0,
      current_window: { accepted_to_offline_target: 5 },
      retained_process_window_proofs: 5,
    });
  });

  test("goes by the setting of the freshness window", () => {
    const settings = { ...SETTINGS, proofFreshnessMs: 59_999 };
    expect(sessionProofRetention(WINDOWS.busy, settings)).toMatchObject({ stale_by_ms: 1 });
  });

  test("goes by the last proof of an online target even when newer ones have pushed it out", () => {
    const proofs = Array.from({ length: 25 }, () => proofOf({ targetStatus: "stale", acceptedAt: STARTED_AT + 1 }));
    const report = sessionProofRetention(sourceOf({ proofs, lastOnlineProof: proofOf() }), SETTINGS);
    expect(report).toMatchObject({ proof_freshness: "fresh", latest_online_target_proof_at: STARTED_AT });
  });

  test.each<[WindowName, string[]]>([
    ["empty", []],
    ["connectorOnline", ["connector_online_now"]],
    ["offlineOnly", ["session_request_accepted"]],
    ["proofStale", ["connector_online_now", "session_request_accepted", "online_target_proof_present"]],
    [
      "proofFresh",
      ["connector_online_now", "session_request_accepted", "online_target_proof_present", "online_target_proof_fresh"],
    ],
  ])("checks in the window %s what passes", (name, passed) => {
    const { checks } = retention(name).activation_check;
    expect(checks.filter((check) => check.passed).map(({ check }) => check)).toEqual(passed);
    expect(checks).toHaveLength(5);
  });

  test("says what ends the proofs: the loss of Redis or a deploy's window reset, not a restart of a service", () => {
    expect(retention("proofFresh").durability.survives_restart).toEqual({
      service_restart: true,
      deploy_window_reset: false,
      loss_of_redis: false,
    });
  });

  test("observes session requests over websockets, not that the gateway had none", () => {
    const [, requests] = retention("webSocketsOnly").activation_check.checks;
    expect(requests).toMatchObject({ check: "session_request_accepted", passed: true });
    expect(numbersIn(requests?.observed as string)).toEqual([2, 0, 2, 2]);
  });

  test("proves nothing of payment, GMV, earnings, completion, payout or reputation", () => {
    const { does_not_prove } = retention("proofFresh").proof_boundaries;
    for (const matter of ["payment", "gmv", "earnings", "completion", "payout", "reputation"]) {
      expect(does_not_prove.join(" ").toLowerCase()).toContain(matter);
    }
  });
});
