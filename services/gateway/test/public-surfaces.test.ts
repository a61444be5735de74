import { createHash, createPrivateKey, sign } from "node:crypto";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { CheckOnline } from "relay-protocol/contract/presence.ts";
import { OnlineAgents, Ready, SelfTestGuide, SelfTestPass } from "relay-protocol/contract/responses.ts";
import { SESSION_OVER, SessionRecord } from "relay-protocol/contract/session.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { KEY_PREFIX } from "relay-window/redis/keys.ts";
import type { Session } from "relay-window/sessions/look-ups.ts";
import { until } from "../../../test/support/until.ts";
import { sessionRecord } from "../src/api/sessions.ts";
import { codeOf, post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

beforeAll(async () => {
  await kit.online("agent://bob");
});

const get = (path: string) => fetch(gateway.url + path);

describe("presence", () => {
  test("of an agent that is online, and of one that was never seen", async () => {
    const online = CheckOnline.parse(await (await get("/api/onboarding/check-online?agent_id=agent://bob")).json());
    expect(online).toMatchObject({ status: "online", can_deliver_realtime: true, severity: "ok" });
    expect(online.recovery.liveness_contract).toEqual({
      heartbeat_interval_ms: 15_000,
      heartbeat_max_ms: 30_000,
      stale_after_ms: 45_000,
      stability_hold_ms: 90_000,
    });

    const unseen = CheckOnline.parse(await (await get("/api/onboarding/check-online?agent_id=agent://nobody")).json());
    expect(unseen).toMatchObject({ status: "not_seen", can_deliver_realtime: false, stale_ms: null, severity: null });
    expect(unseen.next_action).not.toBe(online.next_action);
  });

  test("asks for an agent id, and for nothing else", async () => {
    for (const query of [
      "",
      "?agent_id=bob",
      "?agent_id=agent://bob&more=1",
      "?agent_id=agent://a&agent_id=agent://b",
    ]) {
      expect(await codeOf(get(`/api/onboarding/check-online${query}`))).toBe("400 invalid_request");
    }
  });

  test("of all is counts, never ids", async () => {
    const text = await (await get("/api/onboarding/online-agents")).text();
    expect(OnlineAgents.parse(JSON.parse(text))).toMatchObject({
      complete: true,
      online_agents: 1,
      stale_agents: 0,
      by_severity: { ok: 1 },
    });
    expect(text).not.toContain("agent://");
  });

  test("is part of readiness", async () => {
    const response = await get("/ready");
    expect(response.status).toBe(200);
    expect(Ready.parse(await response.json())).toMatchObject({ ready: true, online_agents: 1, stale_agents: 0 });
  });
});

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

describe("feedback", () => {
  test.each(["/api/public/feedback", "/api/feedback"])("is counted and its text is not kept: POST %s", async (path) => {
    const before = (await kit.snapshot()).feedback;
    const feedback = { surface: "checkOnline", sentiment: "blocked", category: "Mallory was here", message: "secret" };
    const answer = await post(gateway.url + path, feedback);
    expect(answer.status).toBe(202);
    const note = expect.stringContaining("reaches no person");
    expect(await answer.json()).toEqual({ ok: true, stored: "aggregate_only", raw_message_stored: false, note });

    const { feedback: after } = await kit.snapshot();
    for (const name of ["total", "surface:checkOnline", "sentiment:blocked", "category:other", "message_provided"]) {
      expect(after.get(name)).toBe((before.get(name) ?? 0) + 1);
    }
    expect([...after.keys()].join()).not.toMatch(/mallory|secret/i);
  });

  test("refuses what it does not know", async () => {
    expect(await codeOf(post(`${gateway.url}/api/feedback`, { email: "a@b.c" }))).toBe("400 invalid_request");
    expect(await codeOf(post(`${gateway.url}/api/feedback`, { message: 1 }))).toBe("400 invalid_request");
  });
});

describe("the self-test", () => {
  const selfTest = (body: unknown) => post(`${gateway.url}/api/self-test`, body);
  const seed = () => Buffer.from(kit.agentKey.privateKey, "base64url");
  const signed = (changes: object = {}) => {
    const unsigned = {
      id: "env-1",
      type: "message.send",
      from: "agent://alice",
      to: "agent://bob",
      payload: { message: "hi" },
      ts: Date.now(),
      key_id: "alice-1",
      ...changes,
    };
    const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed()]);
    const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
    return { ...unsigned, sig: sign(null, Buffer.from(canonicalText(unsigned)), key).toString("base64url") };
  };

  test("passes what the websocket would take, as often as it is asked", async () => {
    const envelope = signed();
    for (let n = 0; n < 2; n += 1) {
      const answer = await selfTest(envelope);
      expect(SelfTestPass.parse(await answer.json())).toMatchObject({ stage: "pass", type: "message.send" });
    }
    await selfTest({ ...envelope, sig: "A".repeat(86) });
    await until("passes are counted", async () => ((await kit.snapshot()).traffic.get("self_test_passed") ?? 0) >= 2);
    expect((await kit.snapshot()).traffic.get("self_test_passed")).toBe(2);
  });

  test("refuses with the websocket's own codes, and tells a clock that is off the time", async () => {
    const far = signed({ ts: Date.now() - 400_000 });
    const skew = (await (await selfTest(far)).json()) as { code: string; server_time: number };
    expect(skew.code).toBe("clock_skew");
    expect(Math.abs(skew.server_time - Date.now())).toBeLessThan(5000);
    const inSeconds = signed({ ts: Math.floor(Date.now() / 1000) });
    const explained = await post(`${gateway.url}/api/self-test?explain=1`, inSeconds);
    expect(await explained.json()).toMatchObject({ code: "clock_skew", hint: expect.stringContaining("seconds") });

    expect(await codeOf(selfTest({ ...signed(), payload: {} }))).toBe("400 bad_signature");
    expect(await codeOf(selfTest(signed({ key_id: "alice-2" })))).toBe("400 unknown_key");
    expect(await codeOf(selfTest(signed({ key_id: "gateway-1" })))).toBe("400 unknown_key");
    expect(await codeOf(selfTest(signed({ from: "agent://bob" })))).toBe("400 key_not_allowed");
    expect(await codeOf(selfTest({ ...signed(), more: 1 }))).toBe("400 invalid_envelope");
    expect(await codeOf(selfTest('{"__proto__":{}}'))).toBe("400 invalid_envelope");
    expect(await codeOf(selfTest("{"))).toBe("400 malformed_json");
    expect(await codeOf(selfTest(signed({ payload: { pad: "x".repeat(32_768) } })))).toBe("413 body_too_large");
  });

  describe("with ?explain=1", () => {
    const explained = async (body: unknown) => {
      const answer = await post(`${gateway.url}/api/self-test?explain=1`, body);
      return { status: answer.status, ...((await answer.json()) as { canonical?: string; canonical_sha256?: string }) };
    };

    test("tells the canonical text of any envelope whose shape is valid, whatever its clock, key or signature", async () => {
      const good = signed();
      expect(await explained(good)).toMatchObject({ status: 200, canonical: canonicalText(good) });
      const forged = { ...good, payload: { b: 1, a: 2 } };
      const refused = await explained(forged);
      expect(refused).toMatchObject({ status: 400, code: "bad_signature", canonical: canonicalText(forged) });
      expect(refused.canonical_sha256).toBe(
        createHash("sha256")
          .update(refused.canonical ?? "")
          .digest("hex"),
      );
      for (const changes of [{ ts: 0 }, { key_id: "nobody" }, { from: "agent://bob", to: "agent://alice" }]) {
        const envelope = signed(changes);
        expect(await explained(envelope)).toMatchObject({ status: 400, canonical: canonicalText(envelope) });
      }
    });

    test("tells nothing of what has no valid shape, and without it nothing of any", async () => {
      const itself = { type: "session.request", to: "agent://alice", payload: { purpose: "p" } };
      for (const body of [{ ...signed(), more: 1 }, signed(itself), "{", "1"]) {
        const answer = await explained(body);
        expect(answer.status).toBe(400);
        expect(answer).not.toHaveProperty("canonical");
      }
      const plain = await (await selfTest({ ...signed(), payload: {} })).json();
      expect(plain).toMatchObject({ code: "bad_signature", retry: "fix", canonical_sha256: expect.any(String) });
      expect(plain).not.toHaveProperty("canonical");
    });

    test("is asked for by 1 alone", async () => {
      expect(await codeOf(post(`${gateway.url}/api/self-test?explain=yes`, signed()))).toBe("400 invalid_request");
      expect(await codeOf(post(`${gateway.url}/api/self-test?other=1`, signed()))).toBe("400 invalid_request");
    });
  });

  test("accepts nothing: neither guard nor presence nor sessions know of it", async () => {
    const { link } = await kit.link();
    const before = ((await link.command("KEYS", `${KEY_PREFIX}*:seen:*`)) as string[]).length;
    const session = { type: "session.request", payload: { purpose: "p" } };
    expect((await selfTest(signed(session))).status).toBe(200);
    expect(((await link.command("KEYS", `${KEY_PREFIX}*:seen:*`)) as string[]).length).toBe(before);
  });

  test("explains itself", async () => {
    const guide = SelfTestGuide.parse(await (await get("/api/self-test")).json());
    expect(guide.canonical_signing_order).toHaveLength(8);
  });
});
