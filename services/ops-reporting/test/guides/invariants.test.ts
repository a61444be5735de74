import { describe, expect, test } from "@jest/globals";
import type { GuideNext, GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { expandQuery } from "../../../../test/support/literal-follower.ts";
import { type GuideId, guideUrl } from "../../src/guides/guide.ts";
import { ALL, type TargetSituation } from "./target-situations.ts";
import * as windows from "./windows.ts";
import { GUIDE_IDS, NEWER_ID, SESSION_ID, SETTINGS, written } from "./written.ts";

/** What holds in every guide, whatever the situation and whatever the asker names. */

const OPEN = "open_marketplace_first_job_handoff";
const WAITS_FOR_CONNECTOR = ["connect_target_connector", "bring_target_connector_online"];
const MOST_STEPS = 9;

interface Asked extends TargetSituation {
  readonly name: string;
}

/** The six guides for who asks with a part of the situation's query. */
function guidesFor({ source, target, query, newer }: TargetSituation, settings = SETTINGS) {
  const named = query.target_agent_id !== undefined;
  const sessions = new Map<string, Target["session"]>([
    [SESSION_ID, target.session],
    [NEWER_ID, newer ?? null],
  ]);
  const session = sessions.get(query.session_id ?? "") ?? null;
  return written(source, query, named ? { ...target, session } : null, settings);
}

const CASES: readonly Asked[] = [
  ...Object.entries(ALL).flatMap(([name, situation]) => [
    { ...situation, name },
    { ...situation, name: `${name}; without from`, query: without(situation.query, "from") },
    { ...situation, name: `${name}; without a target`, query: without(situation.query, "target_agent_id") },
    { ...situation, name: `${name}; with nothing named`, query: {} },
  ]),
  ...Object.entries(windows)
    .filter(([, source]) => typeof source === "object")
    .map(([name, source]) => ({ name, source, query: {}, target: ALL["never seen"]?.target }) as Asked),
];

function without(query: GuideQuery, name: keyof GuideQuery): GuideQuery {
  return Object.fromEntries(Object.entries(query).filter(([key]) => key !== name));
}

describe.each(CASES)("$name", (asked) => {
  const guides = guidesFor(asked);
  const gate = guides.marketplaceHandoffStatus;
  const all = GUIDE_IDS.map((id) => [id, guides[id]] as const);

  test("a guide that is ready to run lacks nothing, and has a request that runs as it stands and reaches its target", () => {
    const reachesTarget = gate.target_presence?.can_deliver_realtime === true;
    for (const [id, { ready_to_run, missing, next, templates }] of all) {
      const isReady = missing.length === 0 && next.request !== null && reachesTarget;
      if (id === "sessionRequestRefreshPacket") continue;
      expect([id, ready_to_run]).toEqual([id, isReady]);
      if (ready_to_run) expect([id, templates]).not.toContain("next");
    }
    expect(guides.sessionRequestGuide.compact_refresh_packet.missing).toEqual(guides.sessionRequestGuide.missing);
  });

  test("the packet's request is ready only where it is what next leads to", () => {
    const { sessionRequestGuide, sessionRequestRefreshPacket } = guides;
    const { ready_to_run } = sessionRequestRefreshPacket;
    expect(ready_to_run).toBe(sessionRequestRefreshPacket.next.request?.method === "POST");
    expect(sessionRequestGuide.compact_refresh_packet.ready_to_run).toBe(ready_to_run);
  });

  test("what can be posted with an API key can be signed by who has a signing key", () => {
    for (const [, { next }] of all) {
      const { body } = next.request ?? {};
      expect(next.websocket_envelope?.to).toBe(body?.to);
      if (body === undefined) continue;
      const { purpose, ttl_minutes } = body;
      expect(next.websocket_envelope).toMatchObject({ type: "session.request", payload: { purpose, ttl_minutes } });
    }
  });

  test("no gate permits a handoff to who asks for themselves without a session that is approved and proven", () => {
    const { from, target_agent_id, session_id } = asked.query;
    const isForAsker = session_id !== undefined || (from !== undefined && target_agent_id !== undefined);
    const isApproved = gate.target_decision === "approved";
    expect(gate.important_handoff_permitted_from_process_window).toBe(
      gate.status.startsWith("go_") && (isApproved || !isForAsker),
    );
  });

  test("a gate that permits nothing under a fresh proof says what the asker lacks, and no guide says to go on", () => {
    if (gate.important_handoff_permitted_from_process_window) {
      expect(gate.reason).not.toContain("not permitted");
      return;
    }
    const isUnnamed = gate.status.startsWith("go_") && gate.target_decision === null;
    expect(gate.reason.includes("not permitted")).toBe(isUnnamed);
    expect(all.filter(([, { next_action }]) => /\bGo\b/.test(next_action)).map(([id]) => id)).toEqual([]);
  });

  test("a session request is printed to be sent only where the guide is ready to run", () => {
    const { sessionRequestGuide, activationPlan } = guides;
    const posts = [
      sessionRequestGuide.next_steps.some(({ method }) => method === "POST"),
      activationPlan.copy_paste_steps.some(({ command }) => command?.includes("-X POST")),
    ];
    const { next } = guides.sessionRequestRefreshPacket;
    const leadsToRequest = gate.allowed_next_step !== OPEN && next.step !== "read_newest_session";
    expect(posts).toEqual([sessionRequestGuide.ready_to_run && leadsToRequest, activationPlan.ready_to_run]);
  });

  test("no step says that the gate is passed while next says otherwise", () => {
    const { steps, next } = guides.marketplaceFirstJobHandoff;
    const passed = steps.find(({ step }) => step === "handoff_gate")?.done === true;
    expect(passed).toBe(next.step === "agree_on_first_job_in_marketplace");
    const { pass_when } = guides.sessionRequestRefreshPacket.post_refresh_gate;
    const holds = pass_when.every(({ field, equals }) => gate[field as keyof typeof gate] === equals);
    if (asked.query.from !== undefined) expect(holds).toBe(passed);
  });

  test("the gate says in one sentence why, alike in every guide", () => {
    expect(gate.reason).toMatch(/^[A-Z][^.]+\.$/);
    const { activationPlan, sessionRequestGuide, ecosystemHandoff, marketplaceFirstJobHandoff } = guides;
    const gates = [activationPlan.readiness.gate, sessionRequestGuide.readiness_gate, ecosystemHandoff.proof_gate];
    for (const { reason } of [...gates, marketplaceFirstJobHandoff.proof_gate]) expect(reason).toBe(gate.reason);
  });

  test("next is yours where it has a request, and somebody else's where it has none", () => {
    for (const [id, { next }] of all) expect([id, next.who === "you"]).toEqual([id, next.request !== null]);
  });

  test("next never leads to the address that it stands in, and says where it is a template", () => {
    for (const [id, { next, templates }] of all) {
      if (next.request === null) continue;
      expect(next.request.url).not.toBe(guideUrl(SETTINGS, id, asked.query));
      expect([id, templates.includes("next")]).toEqual([id, next.request.url.includes("{")]);
    }
  });

  test("next_action is what next says, and next the step that the gate allows", () => {
    for (const [id, guide] of all) {
      const { next, next_action, missing } = guide;
      expect(next_action).toBe(next.action);
      expect([id, stepsAt(id, gate.allowed_next_step, missing, asked)]).toEqual([
        id,
        expect.arrayContaining([next.step]),
      ]);
    }
    expect(guides.sessionRequestRefreshPacket.action).toBe(gate.allowed_next_step);
  });

  test("an open way needs no connector back, and one that waits for a connector says so", () => {
    const { readiness, connector_recovery } = guides.activationPlan;
    const { allowed_next_step } = readiness.gate;
    expect(connector_recovery.needed).toBe(WAITS_FOR_CONNECTOR.includes(allowed_next_step));
    const isUnhindered = [null, "none"].includes(readiness.current_bottleneck);
    if (readiness.current_bottleneck === "no_connector_online") expect(connector_recovery.needed).toBe(true);
    if (allowed_next_step === OPEN) expect([isUnhindered, connector_recovery.needed]).toEqual([true, false]);
  });

  test("only a session of the asker's that its target approved leads to a first job", () => {
    for (const [, { next, target_decision }] of all) {
      if (next.step !== "agree_on_first_job_in_marketplace") continue;
      expect([target_decision, asked.query.session_id, asked.query.from]).toEqual([
        "approved",
        SESSION_ID,
        asked.target.session?.requester,
      ]);
    }
  });

  test.each([
    ["shown", SETTINGS],
    ["hidden", { ...SETTINGS, proofIdentities: "hidden" } as const],
  ])("whoever follows next comes to an end, with identities %s", (_, settings) => {
    for (const id of GUIDE_IDS) {
      let [guide, query]: [GuideId, GuideQuery] = [id, asked.query];
      const seen = new Set<string>();
      for (let next = nextIn(guide, query); next.request?.method === "GET"; next = nextIn(guide, query)) {
        const url = new URL(expandQuery(next.request.url, { from: "agent://alice", target_agent_id: "agent://bob" }));
        [guide, query] = [guideAt(url), Object.fromEntries(url.searchParams)];
        expect(seen).not.toContain(url.href);
        expect(seen.add(url.href).size).toBeLessThanOrEqual(MOST_STEPS);
      }
      function nextIn(at: GuideId, with_: GuideQuery): GuideNext {
        return guidesFor({ ...asked, query: with_ }, settings)[at].next;
      }
    }
  });
});

function guideAt(url: URL): GuideId {
  return GUIDE_IDS.find((id) => SURFACES[id].path === url.pathname) as GuideId;
}

/** The steps that agree with what the gate allows, in this guide. */
function stepsAt(
  id: GuideId,
  allowed: string,
  missing: readonly string[],
  { query, target: { session } }: TargetSituation,
): readonly string[] {
  if (missing.some((name) => name !== "session_id")) return ["name_what_is_missing"];
  const isDisplaced = query.session_id !== undefined && session?.isDisplaced === true;
  if (allowed !== OPEN) return isDisplaced ? [allowed, "read_newest_session"] : [allowed];
  if (id === "marketplaceHandoffStatus") return [OPEN];
  if (id !== "marketplaceFirstJobHandoff") return ["read_handoff_gate"];
  const withoutOpenSession = ["read_newest_session", "request_session_with_online_target", ...WAITS_FOR_CONNECTOR];
  return query.session_id === undefined ? withoutOpenSession : ["agree_on_first_job_in_marketplace"];
}
