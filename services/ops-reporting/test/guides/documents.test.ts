import { describe, expect, test } from "@jest/globals";
import {
  type GuideQuery,
  GuideQuery as GuideQuerySchema,
  RefreshPacket,
} from "relay-protocol/contract/reports/guides.ts";
import { SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { STARTED_AT, type WholeSource } from "../report-sources.ts";
import * as windows from "./windows.ts";
import {
  AWAY,
  GUIDE_IDS,
  NAMED,
  ONLINE,
  PROVEN,
  SESSION_ID,
  SETTINGS,
  sessionOf,
  targetOf,
  withSession,
  written,
} from "./written.ts";

const SOURCES = [
  windows.EMPTY,
  windows.NONE_ONLINE,
  windows.NO_REQUEST,
  windows.OFFLINE_ONLY,
  windows.FRESH,
  windows.EXPIRED,
];
const TARGETS = [
  targetOf(),
  targetOf({ presence: AWAY.offline }),
  targetOf({ presence: ONLINE }),
  targetOf(PROVEN),
  withSession("pending"),
  withSession("rejected"),
  targetOf({ ...PROVEN, session: sessionOf({ decision: "expired", isDisplaced: true }) }),
  targetOf({ presence: AWAY.offline, session: sessionOf({ delivery: "stale" }) }),
];
type Case = readonly [WholeSource, GuideQuery, Target | null];
const CASES: readonly Case[] = SOURCES.flatMap((source): Case[] => [
  [source, {}, null],
  [source, { from: "agent://alice" }, null],
  ...TARGETS.flatMap((target): Case[] => [
    [source, { target_agent_id: "agent://bob" }, target],
    [source, { ...NAMED, ...(target.session === null ? {} : { session_id: SESSION_ID }) }, target],
  ]),
]);
const ALL = CASES.flatMap((theCase) => Object.values(written(...theCase)));

describe("every guide, in every window", () => {
  test("says what the relay does not do, and that it keeps nothing raw", () => {
    for (const guide of ALL) {
      expect(guide).toMatchObject({
        ok: true,
        service: "agent-relay",
        durable_session_proof_store_configured: false,
        reputation_scores_exposed: false,
        verified_deal_reputation_policy: { status: "roadmap_metadata_only", reputation_scores_exposed: false },
        privacy: { aggregate_only: true, payloads: false, api_keys: false },
      });
      const { does_not_prove } = guide.proof_boundaries;
      for (const claim of ["payment", "GMV", "earnings", "completion", "payout", "reputation"]) {
        expect(does_not_prove.join(" ")).toMatch(new RegExp(claim, "i"));
      }
    }
  });

  test("names no agent but those of its query", () => {
    for (const [source, query, target] of CASES) {
      const asked = new Set([query.from ?? "agent://YOUR_AGENT", query.target_agent_id ?? "agent://TARGET_AGENT"]);
      const named = new Set(JSON.stringify(written(source, query, target)).match(/agent:\/\/[\w.-]+/g));
      expect([...named].filter((agent) => !asked.has(agent))).toEqual([]);
    }
  });

  test("shows a placeholder only where it says that it is not ready to run", () => {
    for (const guide of ALL) {
      const isNamed = guide.missing.every((name) => name === "session_id");
      if (guide.ready_to_run) expect(isNamed).toBe(true);
      if (isNamed)
        expect(JSON.stringify(guide).replace(/\/sessions\/\{session_id\}/g, "")).not.toMatch(
          /YOUR_AGENT|TARGET_AGENT|[{]\w+[}]/,
        );
    }
  });

  test("asks for the query parameters that it lacks, and then is ready", () => {
    for (const id of GUIDE_IDS) {
      const bare = written(windows.EMPTY)[id];
      expect(bare.missing).toContain("target_agent_id");
      expect(bare.next).toMatchObject({ who: "you", request: { method: "GET" } });
      const query = { ...NAMED, session_id: SESSION_ID };
      const { missing, ready_to_run } = written(windows.FRESH, query, targetOf({ presence: ONLINE }))[id];
      expect([missing, ready_to_run]).toEqual([[], true]);
    }
  });

  test("has nobody send what runs not as it stands", () => {
    for (const { next } of ALL) {
      if (next.request?.method !== "POST") continue;
      expect(SimpleSessionRequest.safeParse(next.request.body).success).toBe(true);
    }
  });

  test("speaks of the whole window without a target, and says so", () => {
    for (const source of SOURCES) {
      const { marketplaceHandoffStatus, activationPlan } = written(source);
      for (const gate of [marketplaceHandoffStatus, activationPlan.readiness.gate]) {
        expect(gate).toMatchObject({ scope: "process_window", target_presence: null, proof_requester_is_you: null });
      }
    }
  });

  test("links to the relay's own addresses by the settings alone", () => {
    const urls = JSON.stringify(ALL).match(/(?:https?|wss?):\/\/[^/"' ]*/g);
    expect(new Set(urls)).toEqual(new Set(["https://relay.example", "wss://sockets.example"]));
  });

  test("keeps the query in its links to other guides", () => {
    const query = { ...NAMED, session_id: SESSION_ID };
    const text = JSON.stringify(written(windows.FRESH, query, withSession("pending")));
    // What reads the gate of the session that a request of the document opens.
    const others = text.replace(/curl -sS \\"[^"]*"/g, "").replace(/"post_refresh_gate":[^}]*/g, "");
    for (const [url] of others.matchAll(/https:\/\/relay\.example\/api\/public\/[a-z]+-[^"' ]*/g)) {
      expect(Object.fromEntries(new URL(url).searchParams)).toEqual(query);
    }
  });

  test("does not change what it was computed from, and says the same again", () => {
    expect(CASES.flatMap((theCase) => Object.values(written(...theCase)))).toEqual(ALL);
  });
});

describe("the size of a guide", () => {
  const longest = (letter: string) => `agent://${letter.repeat(63)}`;
  const query = { from: longest("a"), target_agent_id: longest("b"), session_id: SESSION_ID };
  const settings = { ...SETTINGS, baseUrl: "https://agent-relay.example.com", wsUrl: "wss://agent-relay.example.com" };

  test.each(GUIDE_IDS)("is small enough for a small reader, with the longest ids there are: %s", (id) => {
    const most = id === "sessionRequestGuide" ? 8192 : 6144;
    for (const source of SOURCES) {
      for (const target of TARGETS) {
        const session = target.session && { ...target.session, requester: query.from };
        const asked = { ...target, agent: query.target_agent_id, session };
        const guide = written(source, query, asked, settings)[id];
        expect(Buffer.byteLength(JSON.stringify(guide))).toBeLessThanOrEqual(most);
      }
      expect(Buffer.byteLength(JSON.stringify(written(source, {}, null, settings)[id]))).toBeLessThanOrEqual(most);
    }
  });
});

describe("the query", () => {
  test("is refused when from is the target: a session is between two agents", () => {
    const same = { from: "agent://alice", target_agent_id: "agent://alice" };
    const { error } = GuideQuerySchema.safeParse(same);
    expect(error?.issues.map(({ path }) => path)).toEqual([["target_agent_id"]]);
    expect(GuideQuerySchema.safeParse(NAMED).success).toBe(true);
  });
});

describe("the refresh packet", () => {
  test("is the guide's compact_refresh_packet", () => {
    for (const theCase of CASES) {
      const { sessionRequestGuide, sessionRequestRefreshPacket } = written(...theCase);
      expect(sessionRequestRefreshPacket).toMatchObject(sessionRequestGuide.compact_refresh_packet);
      expect(Object.keys(sessionRequestRefreshPacket)).toEqual(
        expect.arrayContaining(Object.keys(RefreshPacket.shape)),
      );
    }
  });

  test("has its target in the request and in the checks", () => {
    const { sessionRequestRefreshPacket } = written(windows.NO_REQUEST, NAMED, targetOf({ presence: ONLINE }));
    const { request_body, preflight_checklist, target_agent_id } = sessionRequestRefreshPacket;
    expect([request_body.from, request_body.to, target_agent_id]).toEqual([
      "agent://alice",
      "agent://bob",
      "agent://bob",
    ]);
    const checked = preflight_checklist.flatMap(({ request }) => request?.url ?? []);
    expect(checked.map((url) => new URL(url).searchParams.get("agent_id"))).toEqual(["agent://bob"]);
  });

  test("is refused as it stands while a placeholder is in it", () => {
    const { request_body } = written(windows.EMPTY).sessionRequestRefreshPacket;
    expect(SimpleSessionRequest.safeParse(request_body).success).toBe(false);
  });

  test("knows what can come back for its request", () => {
    const { troubleshooting } = written({ ...windows.EMPTY, now: STARTED_AT }).sessionRequestRefreshPacket;
    const codes = [null, "invalid_api_key", "api_key_not_allowed_for_sender", "rate_limited", "unavailable"];
    expect(troubleshooting.map(({ code }) => code)).toEqual(codes);
    expect(troubleshooting[0]?.status).toBe(202);
  });
});

describe("the session request guide", () => {
  test("describes gateway and envelope as their schemas have them", () => {
    const { gateway, websocket_envelope } = written(windows.EMPTY).sessionRequestGuide;
    expect(gateway).toMatchObject({
      endpoint: "https://relay.example/v1/sessions/request",
      auth_header: "x-api-key",
      required_fields: ["from", "to", "purpose"],
      optional_fields: ["intro", "scope", "expected_frequency", "ttl_minutes"],
      max_body_bytes: 32_768,
      requests_per_minute: 30,
    });
    expect(websocket_envelope).toMatchObject({
      url: "wss://sockets.example/ws",
      optional_fields: ["task_id"],
      payload_required_fields: ["purpose"],
      canonical_signing_order: ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"],
      max_clock_skew_ms: 300_000,
    });
    expect(new Set(websocket_envelope.required_fields)).toEqual(
      new Set(["id", "type", "from", "to", "payload", "ts", "key_id", "sig"]),
    );
  });
});
