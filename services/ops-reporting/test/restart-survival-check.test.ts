import { RestartSurvivalCheck } from "@agent-relay/shared/contract/reports/restart-survival-check.ts";
import { describe, expect, test } from "@jest/globals";
import { restartSurvivalCheck } from "../src/reports/restart-survival-check.ts";
import { SETTINGS, STARTED_AT, WINDOWS } from "./snapshot.ts";

type WindowName = keyof typeof WINDOWS;

const check = (name: WindowName) => restartSurvivalCheck(WINDOWS[name], SETTINGS);

describe("restart-survival-check", () => {
  test.each(Object.keys(WINDOWS) as WindowName[])("is blocked by the missing store in the window %s", (name) => {
    expect(RestartSurvivalCheck.parse(check(name))).toMatchObject({
      status: "blocked_missing_durable_session_proof_store",
      current_blocker: { code: "missing_durable_session_proof_store", proofs_at_risk: WINDOWS[name].proofs.length },
      required_store: { configured: false },
      durable_session_proof_store_configured: false,
      current_process_window: { window_started_at: STARTED_AT },
    });
  });

  test.each<[WindowName, string, boolean]>([
    ["empty", "blocked_no_online_target_proof", false],
    ["offlineOnly", "blocked_no_online_target_proof", false],
    ["proofFresh", "passed_fresh_online_target_proof", true],
    ["proofStale", "blocked_stale_online_target_proof", false],
  ])("begins its runbook in the window %s with %s", (name, status, permitted) => {
    const { runbook, refresh_gate } = check(name);
    expect(runbook.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(runbook[0]?.status).toBe(status);
    expect(runbook[1]?.status).toBe("blocked_missing_durable_session_proof_store");
    expect(refresh_gate).toMatchObject({
      important_handoff_permitted_from_process_window: permitted,
      refresh: { method: "POST", url: "https://relay.example/v1/sessions/request" },
    });
  });

  test.each<[WindowName, RegExp]>([
    ["empty", /^0 proofs would not survive a restart\. No agent was seen/],
    ["offlineOnly", /^5 proofs would not survive a restart\. 5 session requests/],
    ["proofFresh", /^1 proof would not survive a restart\. The proof carries a negotiation handoff/],
    ["proofStale", /^1 proof would not survive a restart\. The last proof expired 1 ms ago/],
  ])("says in the window %s what is at risk and what to do", (name, nextAction) => {
    expect(check(name).next_action).toMatch(nextAction);
  });
});
