import { describe, expect, test } from "@jest/globals";
import type { GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import { SESSION_OVER } from "relay-protocol/contract/session.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { FRESHNESS_MS, proofOf, STARTED_AT } from "../report-sources.ts";
import { TABLE, type TargetSituation } from "./target-situations.ts";
import * as windows from "./windows.ts";
import {
  AWAY,
  CONGESTED,
  NAMED,
  NEWER_ID,
  ONLINE,
  PROVEN,
  SESSION_ID,
  SETTINGS,
  sessionOf,
  targetOf,
  withSession,
  written,
} from "./written.ts";

const GO = "go_fresh_relay_negotiation_proof_available";
const NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";
const { now } = windows.FRESH;

describe("with a target, the gate is that target's", () => {
  test("a fresh proof of another target opens it for nobody else", () => {
    const guides = written(windows.FRESH, { target_agent_id: "agent://nobody" }, targetOf({ agent: "agent://nobody" }));
    expect(guides.marketplaceHandoffStatus).toMatchObject({
      status: NO_GO,
      scope: "target",
      allowed_next_step: "connect_target_connector",
      proof_freshness: "none",
      accepted_online_target: false,
      target_presence: { status: "not_seen", can_deliver_realtime: false, last_seen_iso: null },
      last_request_accepted_at_iso: null,
    });
    expect(guides.marketplaceFirstJobHandoff.steps[0]).toMatchObject({ step: "target_online", done: false });
    expect(guides.ecosystemHandoff.relay_prerequisites.map(({ met }) => met)).toEqual([false, false, false, false]);
    expect(guides.activationPlan.readiness).toMatchObject({
      status: "waiting_for_connector",
      current_bottleneck: "no_connector_online",
    });
  });

  test.each([
    [WINDOW_LIMITS.youngMs - 1, true],
    [WINDOW_LIMITS.youngMs, false],
  ])("of a target that was not seen in a window of %i ms, when that began is said: %j", (ageMs, isSaid) => {
    const source = { ...windows.EMPTY, now: STARTED_AT + ageMs };
    const { marketplaceHandoffStatus: gate, activationPlan } = written(source, NAMED, targetOf());
    const hints = activationPlan.connector_recovery.hints.join();
    const whole = written(source, {}, null).activationPlan.next_action;
    for (const text of [gate.reason, gate.next_action, hints, whole]) {
      expect([text, text.includes(new Date(STARTED_AT).toISOString().slice(0, 19))]).toEqual([text, isSaid]);
    }
  });

  test("a target that is online and congested cannot be asked, and the guides say why", () => {
    const target = targetOf({ presence: CONGESTED });
    const guides = written(windows.NO_REQUEST, NAMED, target);
    expect(guides.marketplaceHandoffStatus).toMatchObject({
      allowed_next_step: "bring_target_connector_online",
      target_presence: { status: "online", can_deliver_realtime: false, reason: "congested" },
    });
    expect(guides.marketplaceFirstJobHandoff.steps[0]).toMatchObject({ step: "target_online", done: false });
    expect(guides.ecosystemHandoff.relay_prerequisites.map(({ met }) => met)).toEqual([false, true, false, false]);
    expect(guides.activationPlan.readiness.status).toBe("waiting_for_online_target");
    const away = written(windows.NO_REQUEST, NAMED, targetOf({ presence: AWAY.stale }));
    expect(guides.marketplaceHandoffStatus.next_action).not.toBe(away.marketplaceHandoffStatus.next_action);
  });

  test("its own proof opens it, whoever requested and wherever the target is by now", () => {
    const proof = proofOf({ requester: "agent://carol" });
    const target = targetOf({ presence: AWAY.offline, lastOnlineProof: proof, lastRequestAt: STARTED_AT });
    expect(written({ ...windows.EMPTY, now }, NAMED, target).marketplaceHandoffStatus).toMatchObject({
      status: GO,
      proof_freshness: "fresh",
      latest_online_target_proof_at: STARTED_AT,
      target_presence: { status: "offline", can_deliver_realtime: false },
      last_request_accepted_at_iso: new Date(STARTED_AT).toISOString(),
    });
  });

  test("it permits a handoff to nobody who asks for themselves, before the target approved a session of theirs", () => {
    const permitted = (query: GuideQuery) =>
      written(windows.FRESH, query, withSession("approved")).marketplaceHandoffStatus
        .important_handoff_permitted_from_process_window;
    expect(permitted({ target_agent_id: "agent://bob" })).toBe(true);
    expect(permitted(NAMED)).toBe(false);
    expect(permitted({ ...NAMED, session_id: SESSION_ID })).toBe(true);
    expect(permitted({ ...NAMED, from: "agent://carol", session_id: SESSION_ID })).toBe(false);
  });

  test("under a fresh proof, it tells who names no session what is lacking, and next what its link reads", () => {
    const { marketplaceHandoffStatus } = written(windows.FRESH, NAMED, withSession("rejected"));
    expect(marketplaceHandoffStatus).toMatchObject({
      status: GO,
      reason:
        "The target's last proof is fresh, whoever requested it; not permitted without a session of yours that the target approved: add session_id.",
      next: {
        action:
          "The target has a fresh proof, of your own request. Read in the first-job handoff what was decided on your newest session, or how to request one.",
      },
    });
    const { from: _, ...anonymous } = NAMED;
    const gate = written(windows.FRESH, anonymous, withSession("rejected")).marketplaceHandoffStatus;
    expect(gate.reason).toBe("The target's last proof is fresh, whoever requested it.");
  });

  test.each([
    ["agent://alice", true],
    ["agent://carol", false],
    [undefined, null],
  ])("whether the proof is the asker's is told to who says who asks: %s", (from, isYou) => {
    const { marketplaceHandoffStatus } = written(windows.FRESH, { ...NAMED, from }, targetOf(PROVEN));
    expect(marketplaceHandoffStatus.proof_requester_is_you).toBe(isYou);
  });

  test("and next tells the three apart in words, also the one that has a session of its own", () => {
    const wordsFor = (query: GuideQuery) =>
      written(windows.FRESH, query, withSession("pending")).marketplaceHandoffStatus.next_action;
    const { from: _, ...anonymous } = NAMED;
    const asked = [anonymous, NAMED, { ...NAMED, from: "agent://carol" }, { ...NAMED, session_id: SESSION_ID }];
    expect(new Set(asked.map(wordsFor)).size).toBe(asked.length);
  });

  test("and to nobody where the operator hides identities: asking with one id after the other would tell", () => {
    const settings = { ...SETTINGS, proofIdentities: "hidden" } as const;
    for (const from of ["agent://alice", "agent://carol"]) {
      const { marketplaceHandoffStatus } = written(windows.FRESH, { ...NAMED, from }, targetOf(PROVEN), settings);
      expect(marketplaceHandoffStatus.proof_requester_is_you).toBeNull();
    }
    const wordsFor = (from: string) =>
      written(windows.FRESH, { ...NAMED, from }, targetOf(PROVEN), settings).marketplaceHandoffStatus.next_action;
    expect(wordsFor("agent://alice")).toBe(wordsFor("agent://carol"));
  });

  test("an expired proof is stale while it is among the retained ones, and the last millisecond is fresh", () => {
    const freshnessAt = (at: number) =>
      written({ ...windows.FRESH, now: at }, NAMED, targetOf({ presence: ONLINE })).marketplaceHandoffStatus;
    expect(freshnessAt(STARTED_AT + FRESHNESS_MS)).toMatchObject({ status: GO, proof_freshness: "fresh" });
    expect(freshnessAt(STARTED_AT + FRESHNESS_MS + 1)).toMatchObject({
      status: NO_GO,
      proof_freshness: "stale_refresh_due",
      allowed_next_step: "refresh_session_request_proof",
      stale_by_ms: 1,
    });
  });

  test("a request that found it away is its last one, and no proof", () => {
    const away = proofOf({ acceptedAt: STARTED_AT + 5, targetStatus: "stale" });
    const guides = written({ ...windows.OFFLINE_ONLY, proofs: [away] }, NAMED, targetOf({ presence: ONLINE }));
    expect(guides.marketplaceHandoffStatus).toMatchObject({
      proof_freshness: "none",
      last_request_accepted_at_iso: new Date(STARTED_AT + 5).toISOString(),
    });
    expect(guides.activationPlan.readiness.current_bottleneck).toBe("session_requests_only_to_offline_targets");
  });

  test("it says in words where its proof is between agents of one principal, unless identities are hidden", () => {
    const target = targetOf({ presence: ONLINE });
    const gateFor = (
      samePrincipal: boolean,
      changes: Partial<typeof SETTINGS> = {},
      asked: typeof target | null = target,
    ) => {
      const lastOnlineProof = proofOf({ samePrincipal });
      const source = { ...windows.FRESH, proofs: [lastOnlineProof], lastOnlineProof };
      const query = asked === null ? {} : NAMED;
      return written(source, query, asked, { ...SETTINGS, ...changes }).marketplaceHandoffStatus;
    };
    expect(gateFor(true).status).toBe(GO);
    expect(gateFor(true).reason).toContain("one key or issuer");
    expect(gateFor(true, {}, null).reason).toContain("one key or issuer");
    expect(gateFor(false).reason).not.toContain("one key or issuer");
    expect(gateFor(true, { proofIdentities: "hidden" }).reason).toBe(gateFor(false).reason);
  });

  test("counts of the window are left out, and no other agent's stand in their place", () => {
    const { ecosystemHandoff, sessionRequestGuide, activationPlan } = written(windows.FRESH, NAMED, targetOf(PROVEN));
    const kept = ["retention_limit", "scope", "window_age_ms", "window_started_at", "window_started_at_iso"];
    for (const shown of [
      ecosystemHandoff.current_window,
      sessionRequestGuide.current_window,
      activationPlan.readiness.current_window,
    ]) {
      expect(Object.keys(shown).sort()).toEqual(kept);
    }
    expect(ecosystemHandoff.relay_prerequisites.map(({ value }) => value)).toEqual([10, STARTED_AT, STARTED_AT, 0]);
  });

  test.each([
    [AWAY.stale, "waiting_for_online_target"],
    [AWAY.offline, "waiting_for_online_target"],
    [ONLINE, "waiting_for_session_request"],
  ] as const)("its readiness is by its own presence (%#)", (presence, status) => {
    const { activationPlan } = written(windows.EMPTY, NAMED, targetOf({ presence }));
    expect(activationPlan.readiness.status).toBe(status);
    expect(activationPlan.connector_recovery.needed).toBe(presence !== ONLINE);
  });
});

describe("with a session", () => {
  const asked = { ...NAMED, session_id: SESSION_ID };

  test.each([
    ["pending", "wait_for_target_decision", false, "target"],
    ["approved", "open_marketplace_first_job_handoff", true, "person"],
    ["rejected", "ask_another_target", false, "person"],
    ["expired", "ask_another_target", false, "person"],
  ] as const)("%s stands in every guide, and ends the way", (decision, step, done, who) => {
    const guides = written(windows.FRESH, asked, withSession(decision));
    for (const guide of Object.values(guides)) expect(guide.target_decision).toBe(decision);
    const { status, allowed_next_step, target_decision, ...gate } = guides.marketplaceHandoffStatus;
    expect([status, allowed_next_step, target_decision]).toEqual([GO, step, decision]);
    expect(gate.important_handoff_permitted_from_process_window).toBe(decision === "approved");
    expect(guides.marketplaceFirstJobHandoff.steps[2]).toMatchObject({ step: "target_decision", done });
    expect(guides.marketplaceFirstJobHandoff.next).toMatchObject({ who, request: null });
  });

  test("whose time ran out has the words of its look-up in every guide", () => {
    for (const { next_action } of Object.values(written(windows.FRESH, asked, withSession("expired"))))
      expect(next_action).toBe(SESSION_OVER);
  });

  test("one whose place newer ones took, while its time goes on, leads to the asker's own among these, else to a request", () => {
    const { source, target, query } = TABLE[
      "newer sessions took the place of yours, and you have one of them"
    ] as TargetSituation;
    for (const { next } of Object.values(written(source, query, target)))
      expect(new URL(next.request?.url as string).searchParams.get("session_id")).toBe(NEWER_ID);
    const alone = written(windows.FRESH, asked, { ...target, lastOnlineProof: null });
    for (const guide of Object.values(alone)) expect(guide.target_decision).toBe("expired");
    expect(alone.sessionRequestRefreshPacket.next.request?.method).toBe("POST");
  });

  test("that is over, or that its target has to decide, ends the way in every guide", () => {
    for (const decision of ["pending", "rejected", "expired"] as const) {
      const guides = Object.values(written(windows.FRESH, asked, withSession(decision)));
      const [{ allowed_next_step }] = [written(windows.FRESH, asked, withSession(decision)).marketplaceHandoffStatus];
      for (const { next } of guides) expect(next).toMatchObject({ step: allowed_next_step, request: null });
    }
  });

  test.each([
    [AWAY.stale, "target", undefined],
    [ONLINE, "you", "POST"],
  ] as const)(
    "one that did not reach the target waits for it, then is requested anew (%#)",
    (presence, who, method) => {
      const undelivered = sessionOf({ delivery: "not_seen" });
      for (const proof of [null, proofOf({ requester: "agent://carol" })]) {
        const target = targetOf({ presence, session: undelivered, lastOnlineProof: proof });
        const guides = written(windows.NO_REQUEST, asked, target);
        const { next } = guides.sessionRequestRefreshPacket;
        expect([next.who, next.request?.method]).toEqual([who, method]);
        expect(new Set(Object.values(guides).map((guide) => guide.next.step)).size).toBe(1);
      }
    },
  );

  test.each(["pending", "approved"] as const)("one that is %s borrows no proof of another", (decision) => {
    const session = sessionOf({ decision, delivery: "stale" });
    const guides = written(windows.FRESH, asked, targetOf({ ...PROVEN, session }));
    expect(guides.marketplaceHandoffStatus).toMatchObject({
      status: NO_GO,
      proof_freshness: "none",
      accepted_online_target: false,
      important_handoff_permitted_from_process_window: false,
      refresh_before_important_handoff: true,
      latest_online_target_proof_at: null,
      proof_requester_is_you: null,
      target_decision: decision,
    });
    for (const { next } of Object.values(guides)) expect(next.step).toBe("request_session_with_online_target");
  });

  test("its proof is as old as it is, however fresh the target's last one", () => {
    const session = sessionOf({ decision: "approved" });
    const newer = proofOf({ requester: "agent://carol", acceptedAt: STARTED_AT + 1 });
    const target = targetOf({ ...PROVEN, lastOnlineProof: newer, session });
    const gateAt = (at: number) => written({ ...windows.FRESH, now: at }, asked, target).marketplaceHandoffStatus;
    expect(gateAt(STARTED_AT + FRESHNESS_MS)).toMatchObject({ status: GO, proof_requester_is_you: true });
    expect(gateAt(STARTED_AT + FRESHNESS_MS + 1)).toMatchObject({ status: NO_GO, stale_by_ms: 1 });
  });

  test("rejected ends the way without a fresh proof too", () => {
    const guides = written(windows.EXPIRED, asked, { ...withSession("rejected"), lastOnlineProof: null });
    for (const { next } of Object.values(guides))
      expect(next).toMatchObject({ step: "ask_another_target", request: null });
  });

  test("the handoff asks for it, and its steps carry it", () => {
    const named = written(windows.FRESH, asked, withSession("approved")).marketplaceFirstJobHandoff;
    expect(named.missing).toEqual([]);
    const urls = named.steps.flatMap(({ url }) => url ?? []).filter((url) => !url.includes("check-online"));
    for (const url of urls) expect(url).toContain(SESSION_ID);
    const { missing, next } = written(windows.FRESH, NAMED, withSession("approved")).marketplaceFirstJobHandoff;
    expect([missing, next.who]).toEqual([["session_id"], "you"]);
    expect(new URL(next.request?.url as string).searchParams.get("session_id")).toBe(SESSION_ID);
  });

  test("nobody is told of a session where the operator hides identities: it would tell who asked whom", () => {
    const settings = { ...SETTINGS, proofIdentities: "hidden" } as const;
    const guides = written(windows.FRESH, NAMED, withSession("approved"), settings);
    expect(JSON.stringify(guides)).not.toContain(SESSION_ID);
    expect(guides.marketplaceFirstJobHandoff.next.request?.method).toBe("POST");
  });

  test.each([
    ["that the target does not have", NAMED.from, targetOf(PROVEN)],
    ["of another requester", "agent://carol", withSession("approved")],
  ])("one %s is unknown, has no address, and starts the way again", (_, from, target) => {
    const guides = written(windows.FRESH, { ...asked, from }, target);
    for (const guide of Object.values(guides)) {
      expect(guide).toMatchObject({ target_decision: "unknown", templates: ["session"] });
      expect(guide.next.step).toBe("request_session_with_online_target");
    }
    expect(guides.activationPlan.readiness.current_bottleneck).toBe("no_session_request_accepted");
    expect(guides.marketplaceHandoffStatus).toMatchObject({
      status: NO_GO,
      target_decision: "unknown",
      accepted_online_target: false,
    });
  });

  test("a request sends the asker on with the session that it opens, not with the one of before", () => {
    const { sessionRequestRefreshPacket } = written(windows.EXPIRED, asked, {
      ...withSession("pending"),
      lastOnlineProof: null,
    });
    const { after } = sessionRequestRefreshPacket.next;
    expect(after?.add).toEqual(["session_id"]);
    expect(after?.url).not.toContain(SESSION_ID);
  });
});
