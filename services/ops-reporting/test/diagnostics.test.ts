import { describe, expect, test } from "@jest/globals";
import { Diagnostics } from "relay-protocol/contract/reports/checks.ts";
import { activationOf } from "../src/reports/activation.ts";
import { diagnostics } from "../src/reports/diagnostics.ts";
import { FRESHNESS_MS, proofOf, SETTINGS, STARTED_AT, sourceOf, type WholeSource } from "./report-sources.ts";

const MINUTE_MS = 60_000;
const ONLINE = { ok: 3, stale: 2, critical_stale: 1, offline: 5 };

const keysOf = (gateways: number) =>
  Array.from({ length: gateways }, (_, n) => ({ keyId: `gateway-${n}`, publicKey: "" }));

const reportOf = (changes: Partial<WholeSource> = {}, gateways = 1) =>
  Diagnostics.parse(diagnostics(sourceOf({ gatewayKeys: keysOf(gateways), ...changes }), SETTINGS));

describe("diagnostics", () => {
  test("has the shape of the contract in a window in which nothing happened", () => {
    expect(reportOf()).toMatchObject({
      window: { window_id: "win_test", window_age_ms: 60_000 },
      presence: { online_agents: 0, stale_agents: 0, critical_stale_agents: 0, offline_agents: 0 },
      published_envelopes_last_5_minutes: 0,
      proofs: { retained: 0, proof_freshness: "none", ms_until_refresh_due: null },
      feedback: { total: 0, message_provided: 0, blocked: 0 },
      current_bottleneck: "no_connector_online",
      durable_session_proof_store_configured: false,
      reputation_scores_exposed: false,
    });
  });

  test("shows what the window holds", () => {
    const proof = proofOf();
    const report = reportOf(
      {
        presence: ONLINE,
        counters: new Map([["published_envelopes", 12]]),
        proofs: [proof, proof],
        lastOnlineProof: proof,
        feedback: new Map([
          ["total", 9],
          ["message_provided", 4],
          ["sentiment:blocked", 3],
          ["category:stale_presence", 2],
        ]),
      },
      2,
    );
    expect(report).toMatchObject({
      presence: { online_agents: 3, stale_agents: 3, critical_stale_agents: 1, offline_agents: 5 },
      counters: { published_envelopes: 12, feedback_total: 9 },
      proofs: { retained: 2, proof_freshness: "fresh", latest_online_target_proof_at: STARTED_AT },
      gateways: { live: 2, listed_for_ms: 900_000 },
      feedback: { total: 9, message_provided: 4, blocked: 3 },
    });
    expect(report.feedback.connector_session_blockers).toEqual({
      connector_not_seen: 0,
      stale_presence: 2,
      session_request_failed: 0,
      next_step_unclear: 0,
    });
  });

  test("shows published envelopes by minute, the last 60 whole, those without any too", () => {
    const now = STARTED_AT + 30 * MINUTE_MS;
    const minute = Math.floor(now / MINUTE_MS);
    const minutes = new Map(
      [
        [0, 5],
        [4, 7],
        [5, 11],
        [59, 13],
      ].map(([ago, n]) => [String(minute - (ago as number)), n as number]),
    );
    const report = reportOf({ now, minutes });
    const counts = report.published_envelopes_by_minute.map(({ count }) => count);
    expect(counts.at(-1)).toBe(5);
    expect(counts[0]).toBe(13);
    expect(counts.filter((count) => count > 0)).toEqual([13, 11, 7, 5]);
    expect(report.published_envelopes_last_5_minutes).toBe(12);
    const starts = report.published_envelopes_by_minute.map(({ minute_started_at }) => minute_started_at);
    expect(starts).toEqual(Array.from({ length: 60 }, (_, index) => (minute - 59 + index) * MINUTE_MS));
  });

  test.each([
    ["no gateway", {}, 0, "no_gateway_live"],
    ["no agent", {}, 1, "no_connector_online"],
    ["stale agents", { presence: { ...ONLINE, ok: 0 } }, 1, "no_connector_online"],
    ["an agent online", { presence: ONLINE }, 1, "no_session_request_accepted"],
    ["an expired proof", proofUntil(-1), 1, "session_proof_stale"],
    ["a proof in its last millisecond", proofUntil(0), 1, "none"],
  ] as const)("with %s names the bottleneck, and the advice follows from it", (_, changes, gateways, bottleneck) => {
    const report = reportOf(changes, gateways);
    expect(report.current_bottleneck).toBe(bottleneck);
    const { nextAction } = activationOf(sourceOf(changes), SETTINGS);
    if (gateways > 0) expect(report.next_action).toBe(nextAction);
    else expect(report.next_action).not.toBe(nextAction);
  });
});

describe("connections beside the agents that are online", () => {
  const counted = { online_agents: 0, connections: 2 };

  test("are shown", () => {
    expect(reportOf({ connections: 2 }).presence).toMatchObject(counted);
    expect(reportOf().presence).toMatchObject({ connections: 0 });
  });

  test("change the advice when nobody is online: a client does not refresh its presence", () => {
    const nobody = { presence: { ...ONLINE, ok: 0 } };
    const advice = (changes: Partial<WholeSource>) => reportOf(changes).next_action;
    expect(advice({ ...nobody, connections: 2 })).not.toBe(advice(nobody));
    expect(advice({ ...nobody, connections: 0 })).toBe(advice(nobody));
    expect(advice({ presence: ONLINE, connections: 2 })).toBe(advice({ presence: ONLINE }));
  });
});

/** An online target's proof with so many ms left. */
function proofUntil(ms: number): Partial<WholeSource> {
  const proof = proofOf();
  return { presence: ONLINE, proofs: [proof], lastOnlineProof: proof, now: proof.acceptedAt + FRESHNESS_MS - ms };
}
