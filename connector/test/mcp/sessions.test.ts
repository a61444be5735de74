import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { SessionNotices } from "../../src/cli/sharing/events.ts";
import { Emitter } from "../../src/emitter.ts";
import type { AgentConnection } from "../../src/mcp/agent.ts";
import { McpAgent } from "../../src/mcp/agent.ts";
import { DecidedSessions, SessionRequests } from "../../src/mcp/known-sessions.ts";
import { myStatus } from "../../src/mcp/status.ts";
import type { ToolCall } from "../../src/mcp/tool.ts";
import { UNTRUSTED_NOTE } from "../../src/mcp/tool.ts";
import type { DecidedSession, Delivery, PendingSession } from "../../src/types.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { type Host, McpStage } from "./kit.ts";

const [ALICE, BOB, CAROL] = ["agent://alice", "agent://bob", "agent://carol"];
const PROPOSAL = { purpose: "Translate a page", ttlMinutes: 5 };
const PENDING = "pending_until_session.approve_or_session.reject";

describe("Over a connection of its own", () => {
  const stage = shared(new McpStage("alice", "bob", "carol"));

  describe("A session", () => {
    test("is asked for by a model and approved by a program", async () => {
      const alice = await stage.onlineHost("alice", stage.url);
      const bob = await stage.online("bob", stage.url);
      const proposal = { purpose: "Translate a page", ttl_minutes: 5, intro: "I am Alice.", scope: "One page" };
      const { session_id, ...asked } = await alice.call("request_session", { to: BOB, ...proposal });
      expect(asked).toMatchObject({ session_status: PENDING, can_deliver_realtime: true });
      const request = await next(bob);
      expect(request).toMatchObject({ type: "session.request", sessionId: session_id, payload: proposal });
      await bob.approve(session_id, request.from);
      const { messages } = await alice.call("wait_for_messages");
      expect(messages).toMatchObject([{ from: BOB, type: "session.approve", session_id }]);
    });

    test("is asked for by a program and rejected by a model, which cannot decide it twice", async () => {
      const alice = await stage.onlineHost("alice", stage.url);
      const bob = await stage.online("bob", stage.url);
      const { sessionId } = await bob.requestSession(ALICE, { purpose: "Translate a page" });
      const { messages } = await alice.call("wait_for_messages");
      expect(messages).toMatchObject([{ type: "session.request", session_id: sessionId, from: BOB }]);
      const decision = { session_id: sessionId };
      const rejected = await alice.call("reject_session", { ...decision, reason: "No time." });
      expect(rejected).toMatchObject({ session_id: sessionId, session_status: "rejected", duplicate: false });
      expect(await alice.call("reject_session", decision)).toEqual({ ...rejected, duplicate: true });
      expect(await next(bob)).toMatchObject({ type: "session.reject", sessionId, payload: { reason: "No time." } });
      expect(await alice.error("approve_session", decision)).toMatchObject({ code: "session_closed", retry: "never" });
    });
  });

  describe("A request that came while its target was away", () => {
    test("is not approved, which would count for nothing: the model is told so, and can reject it", async () => {
      const bob = await stage.online("bob", stage.url);
      const { sessionId: session_id } = await bob.requestSession(ALICE, PROPOSAL);
      const alice = await stage.onlineHost("alice", stage.url);
      await until("the notice came", async () => (await alice.call("my_status")).pending_sessions.length === 1);
      const { pending_sessions } = await alice.call("my_status");
      expect(pending_sessions).toMatchObject([{ session_id, requester: BOB, received: false }]);
      const refused = await alice.error("approve_session", { session_id });
      expect(refused).toMatchObject({ code: "request_not_received", retry: "never", outcome: "refused" });
      expect(refused.hint).toContain(BOB);
      const [, second] = [await bob.requestSession(ALICE, PROPOSAL), await alice.call("wait_for_messages")];
      const [{ session_id: again }] = second.messages;
      expect(await alice.call("approve_session", { session_id: again })).toMatchObject({ session_status: "approved" });
      expect(await next(bob)).toMatchObject({ type: "session.approve", sessionId: again });
      expect(await alice.call("reject_session", { session_id })).toMatchObject({ session_status: "rejected", to: BOB });
      expect((await alice.call("my_status")).pending_sessions).toEqual([]);
    });
  });

  describe("A request that its target received", () => {
    test("stands in my_status, with its purpose, until it is decided, also once it was returned as a message", async () => {
      const alice = await stage.onlineHost("alice", stage.url);
      const bob = await stage.online("bob", stage.url);
      const { sessionId: session_id } = await bob.requestSession(ALICE, PROPOSAL);
      await alice.call("wait_for_messages");
      const none = { code: "receipt_incomplete", retry: "later", hint: expect.stringContaining(ALICE) };
      expect(await alice.error("session_receipt", { session_id })).toMatchObject(none);
      const mistyped = `ses_${"0".repeat(26)}`;
      expect(await alice.error("session_receipt", { session_id: mistyped })).toMatchObject({ code: "unknown_session" });
      const [preface, body] = await alice.texts("my_status");
      expect(preface).toBe(UNTRUSTED_NOTE);
      const pending = { session_id, requester: BOB, purpose: PROPOSAL.purpose, received: true };
      expect(JSON.parse(body ?? "").pending_sessions).toMatchObject([pending]);
      await alice.call("approve_session", { session_id });
      expect((await alice.call("my_status")).pending_sessions).toEqual([]);
    });

    test("can be approved by a process that was started later", async () => {
      const former = await stage.online("alice", stage.url);
      const bob = await stage.online("bob", stage.url);
      const { sessionId: session_id } = await bob.requestSession(ALICE, PROPOSAL);
      await next(former);
      await former.close();
      await stage.untilGone(ALICE);
      const alice = await stage.onlineHost("alice", stage.url);
      await until("the notice came", async () => (await alice.call("my_status")).pending_sessions.length === 1);
      expect((await alice.call("my_status")).pending_sessions).toMatchObject([{ session_id, received: true }]);
      expect(await alice.call("approve_session", { session_id })).toMatchObject({ session_status: "approved" });
    });
  });

  describe("A decision that was made while its requester was away", () => {
    test("reaches its model: a call that waits, once, and my_status, also of a process that shares the connection", async () => {
      const former = await stage.online("alice", stage.url);
      const bob = await stage.online("bob", stage.url);
      const { sessionId: session_id } = await former.requestSession(BOB, PROPOSAL);
      await former.close();
      await stage.untilGone(ALICE);
      await bob.approve(session_id, ALICE);
      const decided = [{ session_id, target: BOB, status: "approved", decided_at_iso: expect.any(String) }];
      const first = await stage.host("alice", stage.url);
      expect(await first.call("wait_for_messages")).toMatchObject({ messages: [], decided_sessions: decided });
      const second = await stage.onlineHost("alice", stage.url);
      expect(await second.call("wait_for_messages")).toMatchObject({ messages: [], decided_sessions: decided });
      for (const host of [first, second]) {
        expect(await host.call("wait_for_messages", { timeout_seconds: 0 })).not.toHaveProperty("decided_sessions");
        expect((await host.call("my_status")).decided_sessions).toEqual(decided);
      }
    });

    test("is told once, however often the relay tells it again", () => {
      const emitter = new Emitter();
      const connector = { agent: ALICE, state: {}, on: emitter.on.bind(emitter), start: async () => {} };
      const lookUps = { presenceOf: async () => ({}), sessionOf: async () => ({}) };
      const agent = new McpAgent(connector as unknown as AgentConnection, lookUps);
      agent.start();
      for (let n = 0; n < 3; n += 1) emitter.emit("notice", { kind: "decided_sessions", sessions: [decided("ses_1")] });
      expect(agent.queue.size).toBe(1);
      expect(agent.decisions.all()).toEqual([decided("ses_1")]);
    });
  });

  describe("A session that the model cannot decide", () => {
    test("is its own request, of which it is told who decides", async () => {
      const alice = await stage.onlineHost("alice", stage.url);
      await stage.online("bob", stage.url);
      const { session_id } = await alice.call("request_session", { to: BOB, purpose: "Translate a page" });
      const refused = await alice.error("approve_session", { session_id });
      expect(refused).toMatchObject({ code: "not_your_session", hint: expect.stringContaining(BOB) });
    });

    test("is one of two others", async () => {
      const [alice, bob] = [await stage.onlineHost("alice", stage.url), await stage.online("bob", stage.url)];
      await stage.online("carol", stage.url);
      const { sessionId: session_id } = await bob.requestSession(CAROL, PROPOSAL);
      expect(await alice.error("reject_session", { session_id })).toMatchObject({ code: "not_your_session" });
    });

    test("is one that another process of its agent decided: it is told how, and no longer shown it as undecided", async () => {
      const first = await stage.onlineHost("alice", stage.url);
      const second = await stage.onlineHost("alice", stage.url);
      const bob = await stage.online("bob", stage.url);
      const { sessionId: session_id } = await bob.requestSession(ALICE, PROPOSAL);
      for (const host of [first, second]) await host.call("wait_for_messages");
      await first.call("approve_session", { session_id });
      const closed = { code: "session_closed", message: expect.stringMatching(/approved .*agent:\/\/alice/) };
      expect(await second.error("reject_session", { session_id })).toMatchObject(closed);
      expect((await second.call("my_status")).pending_sessions).toEqual([]);
      expect(await first.error("reject_session", { session_id })).toMatchObject(closed);
    });
  });
});

/** Why there is no connection, once that is known. */
async function causeOf(host: Host): Promise<{ readonly reason: string; readonly message: string }> {
  const cause = async () => {
    const { reason, message } = (await host.call("my_status")).connection;
    return { reason, message };
  };
  await until("the relay is away", async () => (await cause()).reason === "unreachable");
  return await cause();
}

describe("Two servers of one agent", () => {
  const stage = shared(new McpStage("alice", "bob"));

  test("share a connection: both get what comes, both ask, reply and negotiate", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    const second = await stage.onlineHost("alice", stage.url);
    const bob = await stage.onlineHost("bob", stage.url);

    const asked = bob.call("ask_agent", { to: ALICE, message: "How warm is it?" });
    const heard = [await first.call("wait_for_messages"), await second.call("wait_for_messages")];
    const [question] = heard[0].messages;
    expect(heard[1].messages).toEqual([question]);
    await second.call("reply_to", { to: BOB, envelope_id: question.envelope_id, payload: { celsius: 21.5 } });
    expect(await asked).toMatchObject({ reply: { payload: { celsius: 21.5 } } });

    const asking = second.call("ask_agent", { to: BOB, message: "And there?" });
    const [{ envelope_id }] = (await bob.call("wait_for_messages")).messages;
    await bob.call("reply_to", { to: ALICE, envelope_id, message: "20" });
    expect(await asking).toMatchObject({ reply: { from: BOB, payload: { message: "20" } } });

    const { session_id } = await second.call("request_session", { to: BOB, purpose: "Translate a page" });
    await bob.call("wait_for_messages");
    await bob.call("approve_session", { session_id });
    for (const host of [first, second]) {
      expect((await host.call("wait_for_messages")).messages).toMatchObject([{ type: "session.approve", session_id }]);
    }
    const nobody = await second.error("ask_agent", { to: "agent://carol", message: "hi" });
    expect(nobody).toMatchObject({ code: "target_not_online", outcome: "refused", retry: "later" });
  });

  test("go on with one of them when the other ends", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    const [second, third] = [await stage.onlineHost("alice", stage.url), await stage.onlineHost("alice", stage.url)];
    const bob = await stage.online("bob", stage.url);
    await first.stop();
    // Each said so once of the first. Now one says it of itself, the other of that one.
    const shares = () => [...second.events, ...third.events].filter((event) => event === "shared");
    await until("one takes over, and the other shares it", () => shares().length >= 4);
    for (const host of [second, third]) {
      expect(await host.call("send_message", { to: BOB, message: "hi", wait_online_seconds: 20 })).toMatchObject({
        can_deliver_realtime: true,
      });
      await host.untilConnection("online");
    }
    await bob.send(ALICE, { n: 1 });
    for (const host of [second, third]) {
      expect((await host.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
    }
  });

  test("share that of a relay listen, which goes on to print what comes, and take over when it ends", async () => {
    const listen = await stage.begin("alice", stage.url, [], "listen");
    await listen.reported("online");
    const model = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    await bob.send(ALICE, { n: 1 });
    expect((await model.call("wait_for_messages")).messages).toMatchObject([{ payload: { n: 1 } }]);
    await until("it is printed", () => listen.stdout.includes('"n":1'));
    await listen.stop();
    await model.untilAlone();
    await model.call("send_message", { to: BOB, message: "still here" });
    expect(await next(bob)).toMatchObject({ from: ALICE, payload: { message: "still here" } });
    expect(model.events).toContain("online");
  });

  test("tell each model, and each host's log, that the other gets every message too, and why there is no connection", async () => {
    const network = await stage.network();
    const url = `http://${network.host}`;
    const first = await stage.onlineHost("alice", url);
    const second = await stage.onlineHost("alice", url);
    const connectionOf = async (host: Host) => (await host.call("my_status")).connection;
    expect(await connectionOf(second)).toMatchObject({ status: "online", shared_with: expect.any(String) });
    expect(await connectionOf(first)).toMatchObject({ status: "online", shared_with: expect.any(String) });
    for (const host of [first, second]) expect(host.events).toContain("shared");
    network.cut();
    const causes = await Promise.all([first, second].map(causeOf));
    expect(causes[1]).toEqual(causes[0]);
    expect(causes[0]?.message).toContain(network.host);
    network.heal();
    await first.stop();
    await second.untilAlone();
  });

  test("end with one that no longer shares", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    expect((await first.call("my_status")).connection).not.toHaveProperty("shared_with");
    const second = await stage.onlineHost("alice", stage.url);
    const shared = async () => (await first.call("my_status")).connection.shared_with !== undefined;
    await until("the first is told", shared);
    await second.stop();
    await first.untilAlone();
  });

  test("share no connection with one that believes others", async () => {
    await stage.onlineHost("alice", stage.url);
    const second = await stage.host("alice", stage.url, ["--require-verified"]);
    const reason = async () => (await second.call("my_status")).connection.reason;
    await until("it is refused", async () => (await reason()) === "superseded_elsewhere");
  });

  test("know of the sessions that were requested while the agent was away", async () => {
    const bob = await stage.online("bob", stage.url);
    const { sessionId } = await bob.requestSession(ALICE, { purpose: "Translate a page" });
    const first = await stage.onlineHost("alice", stage.url);
    while ((await first.call("my_status")).pending_sessions.length === 0);
    const second = await stage.onlineHost("alice", stage.url);
    const rejected = { session_status: "rejected" };
    expect(await second.call("reject_session", { session_id: sessionId })).toMatchObject(rejected);
  });

  test("know of the sessions that were requested before they shared, and of those that are not decided by now", async () => {
    const first = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const { sessionId: decided } = await bob.requestSession(ALICE, { purpose: "Translate a page" });
    const { sessionId } = await bob.requestSession(ALICE, { purpose: "Translate another" });
    await until("both came", async () => (await first.call("my_status")).waiting === 2);
    await first.call("reject_session", { session_id: decided });
    const second = await stage.onlineHost("alice", stage.url);
    const { pending_sessions } = await second.call("my_status");
    expect(pending_sessions).toMatchObject([{ session_id: sessionId, requester: BOB, received: true }]);
    expect(await second.call("approve_session", { session_id: sessionId })).toMatchObject({
      session_status: "approved",
    });
  });
});

const NOW = new Date();

function decided(sessionId: string): DecidedSession {
  return { sessionId, target: "agent://bob", status: "approved", decidedAt: NOW };
}

function pending(sessionId: string): PendingSession {
  return { sessionId, requester: "agent://bob", createdAt: NOW, expiresAt: new Date(Date.now() + 60_000) };
}

describe("Decisions that the relay tells again", () => {
  test("are no news, however many came after them, of which the newest are kept", () => {
    const told = Array.from({ length: 500 }, (_, n) => decided(`ses_${n}`));
    const sessions = new DecidedSessions();
    expect(sessions.noticed(told)).toHaveLength(500);
    expect(sessions.noticed(told)).toEqual([]);
    expect(sessions.all()).toEqual(told.slice(-100));
  });
});

describe("A request that came here", () => {
  const delivery = { type: "session.request", sessionId: "ses_1", from: "agent://bob", payload: { purpose: "talk" } };
  const told = { ...pending("ses_1"), requester: "agent://mallory" };

  test("is of whom signed it, whatever notices say before and after, and however many they are", () => {
    const requests = new SessionRequests();
    requests.noticed([told]);
    requests.received({ ...delivery, receivedAt: Date.now() } as unknown as Delivery);
    requests.noticed([told, ...Array.from({ length: 1000 }, (_, n) => pending(`ses_0${n}`)), told]);
    expect(requests.find("ses_1")).toMatchObject({ requester: "agent://bob", purpose: "talk", isReceived: true });
    expect(requests.pending().filter(({ requester }) => requester === "agent://mallory")).toEqual([]);
  });

  test("is told so to who shares the connection later, for whom no later notice changes it", () => {
    const notices = new SessionNotices();
    notices.received({ ...delivery, receivedAt: Date.now() } as unknown as Delivery);
    const made = Array.from({ length: 100 }, (_, n) => pending(`ses_0${n}`));
    notices.noticed({ kind: "pending_sessions", total: 101, sessions: [told, ...made] });
    const requests = new SessionRequests();
    for (const notice of notices.all()) if (notice.kind === "pending_sessions") requests.noticed(notice.sessions);
    expect(requests.pending()).toHaveLength(100);
    requests.noticed([told]);
    expect(requests.find("ses_1")).toMatchObject({ requester: "agent://bob" });
  });
});

describe("A request that was decided here", () => {
  test("is not pending again for a notice that left the relay before it knew", () => {
    const requests = new SessionRequests();
    requests.noticed([pending("ses_1"), pending("ses_2")]);
    const delivery = { canDeliverRealtime: true, status: "online" } as const;
    const ack = { envelopeId: "e", duplicate: false, delivery, to: "agent://bob" };
    requests.decided({ ...ack, sessionId: "ses_1", status: "approved" });
    requests.noticed([pending("ses_1"), pending("ses_2")]);
    expect(requests.pending().map(({ sessionId }) => sessionId)).toEqual(["ses_2"]);
  });
});

test("A call of my_status that was cancelled before it began ends at once", async () => {
  const connector = { state: { status: "idle" }, on: () => () => {} };
  const call = { signal: AbortSignal.abort() } as ToolCall;
  await expect(myStatus.run({}, { connector } as unknown as McpAgent, call)).rejects.toThrow("aborted");
});
