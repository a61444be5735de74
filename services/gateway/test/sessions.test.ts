import { describe, expect, test } from "@jest/globals";
import { SESSION_OVER, SessionRecord } from "relay-protocol/contract/session.ts";
import type { Session } from "relay-window/sessions/look-ups.ts";
import { sessionRecord } from "../src/api/sessions.ts";
import { codeOf, post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

const get = (path: string) => fetch(gateway.url + path);

describe("a session", () => {
  test("can be looked up by its id, times and states only", async () => {
    const body = { from: "agent://alice", to: "agent://nobody", purpose: "to talk", ttl_minutes: 5 };
    const asked = await post(`${gateway.url}/v1/sessions/request`, body, { "x-api-key": kit.freshKey() });
    const { session_id, next } = (await asked.json()) as {
      session_id: string;
      next: { async_negotiation_fallback: { expires_at_iso: string } };
    };
    const text = await (await get(`/sessions/${session_id}`)).text();
    const session = SessionRecord.parse(JSON.parse(text));
    expect(session).toMatchObject({
      session_id,
      status: "pending_until_session.approve_or_session.reject",
      requester: "agent://alice",
      target: "agent://nobody",
      decided_at_iso: null,
      expires_at_iso: next.async_negotiation_fallback.expires_at_iso,
      target_delivery: { status: "not_seen", can_deliver_realtime: false },
    });
    expect(Date.parse(session.expires_at_iso) - Date.parse(session.created_at_iso)).toBe(300_000);
    expect(text).not.toContain("to talk");
  });

  test("says otherwise what to do where its target did not receive the request than where it decides or has decided", () => {
    const PENDING = "pending_until_session.approve_or_session.reject";
    const session = { sessionId: "ses_00000000000000000000000000", requester: "agent://alice", target: "agent://bob" };
    const times = { createdAt: 1, expiresAt: 2, decidedAt: null };
    const adviceOf = (status: Session["status"], delivery: Session["delivery"]) =>
      sessionRecord({ ...session, ...times, status, delivery }).next_action;
    expect(adviceOf("approved", "stale")).toBe(adviceOf(PENDING, "not_seen"));
    const all = [
      adviceOf("approved", "stale"),
      adviceOf(PENDING, "online"),
      ...(["approved", "rejected", "expired"] as const).map((status) => adviceOf(status, "online")),
    ];
    expect(new Set(all).size).toBe(all.length);
    expect(adviceOf("expired", "online")).toBe(SESSION_OVER);
  });

  test.each(["ses_00000000000000000000000000", "ses_zz000000000000000000000000", "x", "%00", "*", "%E0%A4%A"])(
    "that nobody asked for is unknown: %s",
    async (id) => {
      expect(await codeOf(get(`/sessions/${id}`))).toMatch(/^404 (unknown_session|not_found)$/);
    },
  );
});
