import { describe, expect, test } from "@jest/globals";
import { RestartSurvivalCheck } from "relay-protocol/contract/reports/checks.ts";
import { activationOf } from "../src/reports/activation.ts";
import { restartSurvivalCheck } from "../src/reports/restart-survival-check.ts";
import { numbersIn, SETTINGS, STARTED_AT, WINDOWS } from "./report-sources.ts";

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

  test("asks nobody to configure a store, or to restart anything", () => {
    const { runbook, next_action } = check("proofFresh");
    const toDo = [next_action, ...runbook.map(({ action }) => action)].join(" ");
    expect(toDo).not.toMatch(/configure a|would not survive|restart, /i);
    expect(runbook.map(({ status }) => status).slice(2)).toEqual([
      "due_before_every_handoff",
      "due_in_every_new_window",
    ]);
  });

  test.each<[WindowName, number]>([
    ["empty", 0],
    ["offlineOnly", 5],
    ["proofFresh", 1],
    ["proofStale", 1],
  ])("shows for the window %s how many proofs are at risk (%i), and what to do", (name, proofs) => {
    const { next_action } = check(name);
    expect(numbersIn(next_action)[0]).toBe(proofs);
    expect(next_action).toContain(activationOf(WINDOWS[name], SETTINGS).nextAction);
  });
});
