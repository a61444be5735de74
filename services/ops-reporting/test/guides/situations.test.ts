import { describe, expect, test } from "@jest/globals";
import type { GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import { STARTED_AT, sourceOf, type WholeSource } from "../report-sources.ts";
import * as windows from "./windows.ts";
import { NAMED, SESSION_ID, SETTINGS, written } from "./written.ts";

/** Guides without a target: of the whole window. */

const GO = "go_fresh_relay_negotiation_proof_available";
const NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";

describe("the advice follows from the figures", () => {
  test.each([
    ["nobody was seen", windows.EMPTY, "waiting_for_connector", "connect_target_connector"],
    ["all are stale", windows.NONE_ONLINE, "waiting_for_connector", "bring_target_connector_online"],
    [
      "nobody requested a session",
      windows.NO_REQUEST,
      "waiting_for_session_request",
      "request_session_with_online_target",
    ],
    [
      "all targets were offline",
      windows.OFFLINE_ONLY,
      "waiting_for_online_target",
      "request_session_with_online_target",
    ],
    ["the proof expired", windows.EXPIRED, "proof_stale_refresh_due", "refresh_session_request_proof"],
    [
      "it expired and nobody is online",
      windows.EXPIRED_NONE_ONLINE,
      "proof_stale_refresh_due",
      "bring_target_connector_online",
    ],
    ["the proof is fresh", windows.FRESH, "proof_fresh", "open_marketplace_first_job_handoff"],
    [
      "it is fresh and nobody is online any more",
      windows.FRESH_NONE_ONLINE,
      "proof_fresh",
      "open_marketplace_first_job_handoff",
    ],
  ])("when %s", (_, source, status, step) => {
    const { activationPlan, marketplaceHandoffStatus, sessionRequestRefreshPacket } = written(source);
    expect(activationPlan.readiness.status).toBe(status);
    expect(marketplaceHandoffStatus.allowed_next_step).toBe(step);
    expect(sessionRequestRefreshPacket.action).toBe(step);
  });

  test("the gate points to where its next step is described", () => {
    const next = (source: WholeSource) => written(source).marketplaceHandoffStatus.next_step_url;
    const at = "https://relay.example/api/public";
    expect(next(windows.EMPTY)).toBe(`${at}/activation-plan`);
    expect(next(windows.OFFLINE_ONLY)).toBe(`${at}/session-request-refresh-packet`);
    expect(next(windows.FRESH)).toBe(`${at}/marketplace-first-job-handoff`);
  });

  test("the next steps are those that remain", () => {
    const steps = (source: WholeSource) => written(source).sessionRequestGuide.next_steps.map(({ step }) => step);
    const request = ["preflight", "request", "gate"];
    expect(steps(windows.EXPIRED)).toEqual(request);
    expect(steps(windows.FRESH)).toEqual(["gate"]);
  });
});

describe("the gate", () => {
  test("is open through the last millisecond of the proof's window, and closed one later", () => {
    expect(written(windows.FRESH).marketplaceHandoffStatus).toMatchObject({
      status: GO,
      proof_freshness: "fresh",
      important_handoff_permitted_from_process_window: true,
      refresh_before_important_handoff: false,
      accepted_online_target: true,
      refresh_urgency: "fresh_no_refresh_due",
      ms_until_refresh_due: 0,
      stale_by_ms: 0,
      latest_online_target_proof_at: STARTED_AT,
      proof_freshness_expires_at: windows.LAST_FRESH_MS,
      proof_freshness_expires_at_iso: new Date(windows.LAST_FRESH_MS).toISOString(),
    });
    expect(written(windows.EXPIRED).marketplaceHandoffStatus).toMatchObject({
      status: NO_GO,
      proof_freshness: "stale_refresh_due",
      important_handoff_permitted_from_process_window: false,
      refresh_before_important_handoff: true,
      accepted_online_target: true,
      refresh_urgency: "expired_refresh_now",
      ms_until_refresh_due: -1,
      stale_by_ms: 1,
    });
  });

  test.each([windows.EMPTY, windows.OFFLINE_ONLY])("is closed without a proof", (source) => {
    expect(written(source).marketplaceHandoffStatus).toMatchObject({
      status: NO_GO,
      proof_freshness: "none",
      important_handoff_permitted_from_process_window: false,
      accepted_online_target: false,
      refresh_urgency: "no_proof_request_now",
      latest_online_target_proof_at_iso: null,
      ms_until_refresh_due: null,
      stale_by_ms: null,
    });
  });

  test("permits nothing to a query that has session_id and no target_agent_id, and says what to add", () => {
    const gateFor = (query: GuideQuery) => written(windows.FRESH, query).marketplaceHandoffStatus;
    const { from } = NAMED;
    for (const query of [{ session_id: SESSION_ID }, { from, session_id: SESSION_ID }]) {
      expect(gateFor(query)).toMatchObject({
        status: GO,
        important_handoff_permitted_from_process_window: false,
        reason:
          "The last proof of this window is fresh, whoever requested it; not permitted with session_id but no target_agent_id: add target_agent_id.",
      });
    }
    for (const query of [{}, { from }]) {
      expect(gateFor(query)).toMatchObject({
        status: GO,
        important_handoff_permitted_from_process_window: true,
        reason: "The last proof of this window is fresh, whoever requested it.",
      });
    }
  });

  test("takes its window from the setting", () => {
    const settings = { ...SETTINGS, proofFreshnessMs: 1000 };
    const statusAt = (age: number) =>
      written({ ...windows.FRESH, now: STARTED_AT + age }, {}, null, settings).marketplaceHandoffStatus.status;
    expect([statusAt(1000), statusAt(1001)]).toEqual([GO, NO_GO]);
  });

  test("reads the same in every guide", () => {
    for (const source of [windows.EMPTY, windows.EXPIRED, windows.FRESH]) {
      const guides = written(source);
      const gate = guides.sessionRequestGuide.readiness_gate;
      expect(guides.marketplaceHandoffStatus).toMatchObject(gate);
      expect(guides.ecosystemHandoff.proof_gate).toEqual(gate);
      expect(guides.marketplaceFirstJobHandoff.proof_gate).toEqual(gate);
      expect(guides.activationPlan.readiness.gate).toEqual(gate);
    }
  });
});

describe("the refresh packet", () => {
  test.each([
    [windows.NO_REQUEST, "first_proof_due", true, "no_proof_request_now"],
    [windows.EXPIRED, "refresh_due", true, "expired_refresh_now"],
    [windows.FRESH, "fresh", false, "fresh_no_refresh_due"],
  ])("says whether it must be sent (%#)", (source, status, should, urgency) => {
    expect(written(source).sessionRequestRefreshPacket).toMatchObject({
      status,
      should_refresh_before_handoff: should,
      refresh_urgency: urgency,
    });
  });
});

describe("minimum proofs", () => {
  const metBy = (source: WholeSource) =>
    written(source)
      .activationPlan.minimum_viable_proof.filter(({ met }) => met)
      .map(({ proof }) => proof);

  test("are met one after the other", () => {
    const all = [
      "connector_online",
      "signed_envelope_accepted",
      "session_request_accepted_to_online_target",
      "proof_fresh",
    ];
    expect(metBy(windows.EMPTY)).toEqual([]);
    expect(metBy(windows.NO_REQUEST)).toEqual(all.slice(0, 1));
    expect(metBy(windows.OFFLINE_ONLY)).toEqual(all.slice(0, 2));
    expect(metBy(windows.EXPIRED)).toEqual(all.slice(0, 3));
    expect(metBy(windows.FRESH)).toEqual(all);
  });

  test("name the figure that decides", () => {
    expect(written(windows.EXPIRED).ecosystemHandoff.relay_prerequisites.map(({ value }) => value)).toEqual([
      2,
      5,
      STARTED_AT,
      -1,
    ]);
  });

  test("the bridge to a first job ticks off what the window shows, and leaves open what it cannot know", () => {
    const done = (source: WholeSource) => written(source).marketplaceFirstJobHandoff.steps.map((step) => step.done);
    expect(done(windows.EMPTY)).toEqual([null, false, null, false, null, null]);
    expect(done(windows.FRESH)).toEqual([null, true, null, false, null, null]);
  });
});

describe("connector recovery", () => {
  const recoveryOf = (presence: Partial<WholeSource["presence"]>) => {
    const all = { ok: 0, stale: 0, critical_stale: 0, offline: 0, ...presence };
    return written(sourceOf({ presence: all })).activationPlan.connector_recovery;
  };

  test.each([
    [{}, true, 1],
    [{ stale: 1 }, true, 1],
    [{ critical_stale: 1 }, true, 1],
    [{ offline: 1 }, true, 1],
    [{ ok: 1 }, false, 0],
    [{ ok: 1, stale: 1, offline: 1 }, false, 2],
    [{ stale: 1, critical_stale: 1, offline: 1 }, true, 3],
  ])("with %j", (presence, needed, hints) => {
    const recovery = recoveryOf(presence);
    expect({ needed: recovery.needed, hints: recovery.hints.length }).toEqual({ needed, hints });
  });

  test("has a hint of its own for each state that needs one", () => {
    const states = [{}, { stale: 1 }, { critical_stale: 1 }, { offline: 1 }];
    expect(new Set(states.flatMap((presence) => recoveryOf(presence).hints)).size).toBe(states.length);
  });
});
