import { ActivationPlan } from "@agent-relay/shared/contract/reports/guides-activation.ts";
import {
  EcosystemHandoff,
  MarketplaceFirstJobHandoff,
  MarketplaceHandoffStatus,
} from "@agent-relay/shared/contract/reports/guides-handoff.ts";
import {
  RefreshPacket,
  SessionRequestGuide,
  SessionRequestRefreshPacket,
} from "@agent-relay/shared/contract/reports/guides-session-request.ts";
import { SimpleSessionRequest } from "@agent-relay/shared/contract/requests.ts";
import { describe, expect, test } from "@jest/globals";
import { activationPlan } from "../../src/guides/activation-plan.ts";
import { ecosystemHandoff, marketplaceFirstJobHandoff, marketplaceHandoffStatus } from "../../src/guides/handoff.ts";
import { sessionRequestRefreshPacket } from "../../src/guides/refresh-packet.ts";
import { sessionRequestGuide } from "../../src/guides/session-request-guide.ts";
import { guideView } from "../../src/guides/view.ts";
import { FRESHNESS_MS } from "../snapshot.ts";
import * as windows from "./windows.ts";

const SETTINGS = { baseUrl: "https://relay.example", wsUrl: "wss://sockets.example", proofFreshnessMs: FRESHNESS_MS };
const SOURCES = [
  windows.EMPTY,
  windows.NONE_ONLINE,
  windows.NO_REQUEST,
  windows.OFFLINE_ONLY,
  windows.FRESH,
  windows.EXPIRED,
];
const VIEWS = SOURCES.flatMap((source) => [
  guideView(source, SETTINGS),
  guideView(source, SETTINGS, "agent://carol.the-2nd"),
]);

/** Every guide of a view, held against its schema. */
function guidesOf(view: (typeof VIEWS)[number]) {
  return [
    ActivationPlan.parse(activationPlan(view)),
    SessionRequestGuide.parse(sessionRequestGuide(view)),
    SessionRequestRefreshPacket.parse(sessionRequestRefreshPacket(view)),
    EcosystemHandoff.parse(ecosystemHandoff(view)),
    MarketplaceFirstJobHandoff.parse(marketplaceFirstJobHandoff(view)),
    MarketplaceHandoffStatus.parse(marketplaceHandoffStatus(view)),
  ];
}
const ALL_GUIDES = VIEWS.flatMap(guidesOf);

describe("every guide, in every window", () => {
  test("has the shape of the contract, says what the relay does not do, and that it keeps nothing raw", () => {
    for (const guide of ALL_GUIDES) {
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

  test("names no agent but the one asked for", () => {
    for (const view of VIEWS) {
      const named = new Set(JSON.stringify(guidesOf(view)).match(/agent:\/\/[\w.-]+/g));
      expect(named).toEqual(new Set(["agent://YOUR_AGENT", view.target]));
    }
  });

  test("links to the relay's own addresses by the settings alone", () => {
    const urls = JSON.stringify(ALL_GUIDES).match(/(?:https?|wss?):\/\/[^/"' ]*/g);
    expect(new Set(urls)).toEqual(new Set(["https://relay.example", "wss://sockets.example"]));
  });

  test("does not change what it was computed from, and says the same again", () => {
    expect(VIEWS.flatMap(guidesOf)).toEqual(ALL_GUIDES);
  });
});

describe("the target", () => {
  const asked = guideView(windows.FRESH, SETTINGS, "agent://carol.the-2nd");
  const unasked = guideView(windows.FRESH, SETTINGS);

  test("stands in the request, in the check and in the links to other guides", () => {
    const guide = sessionRequestGuide(asked);
    const { target_agent_id, request_body, fill_in, preflight_checklist } = guide.compact_refresh_packet;
    expect([guide.target_agent_id, target_agent_id, request_body.to]).toEqual(Array(3).fill("agent://carol.the-2nd"));
    expect(fill_in.map(({ placeholder }) => placeholder)).toEqual([request_body.from]);
    const checked = preflight_checklist.flatMap(({ request }) => request?.url ?? []);
    expect(new Set(checked.map((url) => new URL(url).searchParams.get("agent_id")))).toEqual(
      new Set(["agent://carol.the-2nd"]),
    );
    const next = new URL(guide.links.session_request_refresh_packet);
    expect(next.searchParams.get("target_agent_id")).toBe("agent://carol.the-2nd");
  });

  test("is a placeholder that no agent can have as an id, listed among what is to be filled in", () => {
    const { request_body, fill_in } = sessionRequestGuide(unasked).compact_refresh_packet;
    expect(fill_in.map(({ placeholder }) => placeholder)).toEqual([request_body.from, request_body.to]);
    expect(SimpleSessionRequest.safeParse(request_body).success).toBe(false);
    const filled = { ...request_body, from: "agent://alice", to: "agent://bob" };
    expect(SimpleSessionRequest.safeParse(filled).success).toBe(true);
  });
});

describe("the refresh packet", () => {
  test("is the guide's compact_refresh_packet", () => {
    for (const view of VIEWS) {
      expect(sessionRequestRefreshPacket(view)).toMatchObject(sessionRequestGuide(view).compact_refresh_packet);
      const fields = Object.keys(RefreshPacket.shape);
      expect(Object.keys(sessionRequestRefreshPacket(view))).toEqual(expect.arrayContaining(fields));
    }
  });

  test("knows every refusal of its endpoint, and the acceptance that is no proof", () => {
    const { troubleshooting } = sessionRequestRefreshPacket(VIEWS[0] as (typeof VIEWS)[number]);
    expect(troubleshooting[0]).toMatchObject({ status: 202, code: null });
    const codes = troubleshooting.map(({ code }) => code);
    expect(codes).toEqual(
      expect.arrayContaining(["invalid_api_key", "api_key_not_allowed_for_sender", "rate_limited", "unavailable"]),
    );
  });
});

describe("the session request guide", () => {
  test("describes gateway and envelope as their schemas have them", () => {
    const { gateway, websocket_envelope } = sessionRequestGuide(guideView(windows.EMPTY, SETTINGS));
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
