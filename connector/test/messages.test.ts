import { describe, expect, test } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import { shared } from "./fixture.ts";
import { next, PodStage, record, untilState } from "./kit.ts";

const stage = shared(new PodStage("alice", "bob", "carol-hmac"));

describe("Two connectors", () => {
  test.each([
    ["alice", "bob"],
    ["alice", "carol-hmac"],
    ["carol-hmac", "alice"],
  ])("exchange messages: %s to %s, and the receiver knows who signed", async (from, to) => {
    const sender = await stage.online(from, stage.url);
    const { agent, trusted } = stage.agent(from);
    const receiver = await stage.online(to, stage.url, { trust: { [agent]: [trusted] } });
    const payload = { text: "Grüße 😂", n: [1e21, { b: null, a: true }] };
    const answer = await sender.send(receiver.agent, payload, { type: "message.offer", taskId: "t-1" });
    expect(answer).toEqual({
      envelopeId: expect.any(String),
      delivery: { status: "online", canDeliverRealtime: true },
      duplicate: false,
    });
    expect(await next(receiver)).toEqual({
      envelope: {
        ...{ id: answer.envelopeId, type: "message.offer", from: agent, to: receiver.agent, task_id: "t-1", payload },
        ...{ ts: expect.any(Number), key_id: trusted.keyId, sig: expect.any(String) },
      },
      ...{
        from: agent,
        type: "message.offer",
        payload,
        taskId: "t-1",
        sealed: false,
        verified: "agent",
        receivedAt: expect.any(Number),
      },
    });
  });

  test("negotiate a session: request, approval, refusal, each with its status", async () => {
    const alice = await stage.online("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const request = await alice.requestSession(bob.agent, { purpose: "to trade", ttlMinutes: 5, scope: "apples" });
    expect(request).toMatchObject({
      status: "pending_until_session.approve_or_session.reject",
      delivery: { canDeliverRealtime: true },
    });
    expect(await next(bob)).toMatchObject({
      ...{ type: "session.request", sessionId: request.sessionId },
      payload: { purpose: "to trade", ttl_minutes: 5, scope: "apples" },
    });
    const { sessionId } = request;
    expect(await bob.approve(sessionId, alice.agent)).toMatchObject({ sessionId, status: "approved" });
    expect(await next(alice)).toMatchObject({ type: "session.approve", sessionId });
    await expect(bob.reject(sessionId, alice.agent)).rejects.toMatchObject({ code: "session_closed", retry: "never" });

    const second = await alice.requestSession(bob.agent, { purpose: "again" });
    expect(await bob.reject(second.sessionId, alice.agent, "no time")).toMatchObject({ status: "rejected" });
    expect(await next(alice)).toMatchObject({ type: "session.reject", payload: { reason: "no time" } });
  });

  test("get sessions that were asked for in their absence as a notice", async () => {
    const alice = await stage.online("alice", stage.url);
    const { sessionId, delivery } = await alice.requestSession("agent://carol-hmac", { purpose: "later" });
    expect(delivery.canDeliverRealtime).toBe(false);
    const carol = stage.connector("carol-hmac", stage.url);
    const heard = record(carol);
    await carol.start();
    await until("the notice is there", () => heard.notices.length > 0);
    const times = { createdAt: expect.any(Date), expiresAt: expect.any(Date) };
    expect(heard.notices).toMatchObject([
      { kind: "pending_sessions", sessions: [{ sessionId, requester: alice.agent, ...times }] },
    ]);
    await carol.reject(sessionId, alice.agent);
  });

  test("learn by a notice what was decided in their absence", async () => {
    const alice = await stage.online("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const { sessionId } = await bob.requestSession(alice.agent, { purpose: "soon" });
    await bob.close();
    await until("bob is away", async () => !(await alice.send(bob.agent, {})).delivery.canDeliverRealtime);
    await alice.approve(sessionId, bob.agent);
    const back = stage.connector("bob", stage.url);
    const heard = record(back);
    await back.start();
    await until("the notice is there", () => heard.notices.length > 0);
    const decided = { sessionId, target: alice.agent, status: "approved", decidedAt: expect.any(Date) };
    expect(heard.notices).toEqual([{ kind: "decided_sessions", sessions: [decided] }]);
  });

  test("get many messages in the order of the calls, without waiting for answers", async () => {
    const alice = await stage.online("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const answers = Array.from({ length: 300 }, (_, n) => alice.send(bob.agent, { n }));
    const got: unknown[] = [];
    for await (const { payload } of bob) if (got.push(payload.n) === 300) break;
    expect(got).toEqual(Array.from({ length: 300 }, (_, n) => n));
    await Promise.all(answers);
  });
});

describe("A send", () => {
  test("says what was meant at the time of the call, whatever becomes of the payload", async () => {
    const alice = await stage.online("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const payload = { word: "before" };
    const sent = alice.send(bob.agent, payload);
    payload.word = "after";
    await sent;
    expect((await next(bob)).payload).toEqual({ word: "before" });
  });

  test("waits for the connection when there is none yet", async () => {
    const bob = await stage.online("bob", stage.url);
    const alice = stage.connector("alice", stage.url);
    const sent = alice.send(bob.agent, { early: true });
    await alice.start();
    expect(await sent).toMatchObject({ delivery: { status: "online" } });
  });

  test("of what is no object is refused, and told what one looks like", async () => {
    const alice = stage.connector("alice", stage.url);
    const sent = alice.send("agent://bob", "hi" as unknown as object);
    await expect(sent).rejects.toMatchObject({
      code: "invalid_envelope",
      message: expect.stringContaining('{"message"'),
    });
  });

  test("with a BigInt is refused by that name", async () => {
    const sent = stage.connector("alice", stage.url).send("agent://bob", { n: 1n });
    await expect(sent).rejects.toMatchObject({
      code: "invalid_envelope",
      errors: [{ field: "payload", message: expect.stringContaining("BigInt") }],
    });
  });

  test.each([
    ["invalid_envelope", { n: Number.NaN }],
    ["invalid_envelope", ["no", "object"]],
    ["invalid_envelope", new Date()],
    ["frame_too_large", { text: "x".repeat(32_700) }],
  ])("is refused as %s before it costs anything", async (code, payload) => {
    const proxy = await stage.proxy(stage.url);
    const alice = await stage.online("alice", proxy.url);
    await expect(alice.send("agent://bob", payload)).rejects.toMatchObject({ code, outcome: "refused" });
    expect(proxy.sent.map(({ type }) => type)).toEqual(["agent.register"]);
  });

  test("as large as the relay takes is taken", async () => {
    const alice = await stage.online("alice", stage.url);
    await alice.send("agent://bob", { text: "x".repeat(32_350) });
  });

  test("that the relay refuses is rejected with the relay's code, and the field that is wrong", async () => {
    const alice = await stage.online("alice", stage.url);
    const refused = alice.approve("ses_none", "agent://bob");
    await expect(refused).rejects.toMatchObject({ code: "invalid_envelope", envelopeId: expect.any(String) });
    await expect(refused).rejects.toMatchObject({ errors: [{ field: "payload.session_id" }] });
    await expect(refused).rejects.toMatchObject({ name: "RelayError", retry: "fix", outcome: "refused" });
  });

  test("over the relay's rate slows down, and all arrive", async () => {
    const slow = await stage.relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "20" });
    const alice = await stage.online("alice", slow.url);
    const answers = await Promise.all(Array.from({ length: 130 }, (_, n) => alice.send("agent://bob", { n })));
    expect(answers.every(({ duplicate }) => !duplicate)).toBe(true);
  });
});

describe("Presence", () => {
  test("is kept with heartbeats, as often as hello asks for", async () => {
    const proxy = await stage.proxy(stage.url, 1000);
    await stage.online("alice", proxy.url);
    const view = stage.relay.view();
    const before = (await view.lastSeen("alice")) as number;
    await until("a heartbeat goes out", () => proxy.sent.some(({ type }) => type === "agent.heartbeat"));
    await until("presence is refreshed", async () => ((await view.lastSeen("alice")) as number) > before);
  });

  test("ends with close: the agent is stale at once, and so is every promise settled", async () => {
    const alice = await stage.online("alice", stage.url);
    const bob = stage.connector("bob", stage.url);
    const { states } = record(bob);
    await bob.start();
    const reading = (async () => {
      for await (const _ of bob);
      return "ended";
    })();
    await bob.close();
    expect(await reading).toBe("ended");
    expect(states).toEqual(["connecting", "online", "closed"]);
    await expect(bob.send("agent://alice", {})).rejects.toMatchObject({ code: "closed" });
    await expect(bob.start()).rejects.toMatchObject({ code: "closed" });
    await until("bob is stale", async () => (await alice.send("agent://bob", {})).delivery.status === "stale");
  });

  test("of a disposed connector ends too", async () => {
    {
      await using alice = stage.connector("alice", stage.url);
      await alice.start();
    }
    await until("alice is gone", async () => !(await stage.relay.view().isConnected("alice")));
  });
});

test("A listener that throws or rejects is reported, and the other listeners are still called", async () => {
  const alice = await stage.online("alice", stage.url);
  const bob = await stage.online("bob", stage.url);
  const heard = record(bob);
  bob.on("delivery", () => {
    throw new Error("mine");
  });
  bob.on("delivery", () => Promise.reject(new Error("mine too")));
  bob.on("error", () => {
    throw new Error("and mine");
  });
  const off = bob.on("delivery", () => heard.overflows.push(1));
  off();
  await alice.send(bob.agent, { n: 1 });
  await until("both are reported", () => heard.errors.length === 2);
  expect(heard.errors).toMatchObject([{ code: "listener_failed" }, { code: "listener_failed" }]);
  expect(heard.deliveries).toHaveLength(1);
  expect(heard.overflows).toEqual([]);
  await untilState(bob, "online");
});
