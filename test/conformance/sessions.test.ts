import { beforeEach, describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const TARGETS = Array.from({ length: 12 }, (_, n) => `target${n}`);
const relay = conformingRelay("alice", "bob-hmac", "carol", ...TARGETS);
const PENDING = "pending_until_session.approve_or_session.reject";
const PARTITIONS = { RELAY_PARTITIONS: "3" };
const one = given(() => relay.startWsConnector(PARTITIONS));
const two = given(() => relay.startWsConnector(PARTITIONS));
const alice = given(() => relay.online(one, "alice"));
const bob = given(() => relay.online(two, "bob-hmac"));
const carol = given(() => relay.online(two, "carol"));

function request(to: string, payload: object = {}): Frame {
  return relay.envelope("alice", "session.request", { to: `agent://${to}`, payload: { purpose: "p", ...payload } });
}

function decision(name: string, verdict: "approve" | "reject", session_id: string, to = "alice"): Frame {
  return relay.envelope(name, `session.${verdict}`, { to: `agent://${to}`, payload: { session_id } });
}

describe("a session between two connected agents", () => {
  test("is requested, with its id beside the signed request", async () => {
    const envelope = request("bob-hmac", { intro: "hello", scope: "all", expected_frequency: "daily", ttl_minutes: 5 });
    const { session_id } = await alice.ask(envelope);
    expect(await bob.delivered(envelope.id)).toEqual({ frame: "deliver", session_id, envelope });
  });

  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("ends with the target's session.%s, which the requester gets", async (verdict, status) => {
    const { session_id } = await alice.ask(request("bob-hmac"));
    const envelope = decision("bob-hmac", verdict, session_id);
    expect(await bob.ask(envelope)).toMatchObject({ accepted: true, session_id, session_status: status });
    expect(await alice.delivered(envelope.id)).toEqual({ frame: "deliver", session_id, envelope });
  });

  test("may be decided while the requester is away", async () => {
    const guest = await relay.online(one, "target0");
    const asked = relay.envelope("target0", "session.request", { to: "agent://carol", payload: { purpose: "p" } });
    const { session_id } = await guest.ask(asked);
    const back = await relay.connect(one);
    await guest.close();
    await back.ask(relay.envelope("target0", "agent.register"));
    const envelope = decision("carol", "approve", session_id, "target0");
    expect(await carol.ask(envelope)).toMatchObject({ accepted: true, session_status: "approved" });
  });
});

describe("a decision is refused", () => {
  let session_id: string;

  beforeEach(async () => {
    ({ session_id } = await alice.ask(request("bob-hmac")));
  });

  test("as unknown_session when there is no such session", async () => {
    for (const prefix of ["00", "02", "zz"]) {
      const envelope = decision("bob-hmac", "approve", `ses_${prefix}${"0".repeat(24)}`);
      expect((await bob.ask(envelope)).code).toMatch(/^(unknown_session|not_your_session)$/);
    }
    const unknown = `${session_id.slice(0, 6)}${"0".repeat(24)}`;
    expect(await bob.ask(decision("bob-hmac", "reject", unknown))).toMatchObject({ code: "unknown_session" });
  });

  test("as not_your_session when it comes from somebody else, the requester included", async () => {
    expect(await carol.ask(decision("carol", "approve", session_id))).toMatchObject({ code: "not_your_session" });
    expect(await alice.ask(decision("alice", "approve", session_id, "carol"))).toMatchObject({
      code: "not_your_session",
    });
  });

  test("as not_your_session when it does not go to the requester", async () => {
    expect(await bob.ask(decision("bob-hmac", "approve", session_id, "carol"))).toMatchObject({
      code: "not_your_session",
    });
  });

  test("as session_closed when the session is decided already; the requester gets the first decision only", async () => {
    const first = decision("bob-hmac", "approve", session_id);
    const second = decision("bob-hmac", "reject", session_id);
    await bob.ask(first);
    expect(await bob.ask(second)).toMatchObject({ code: "session_closed", envelope_id: second.id });
    const marker = relay.envelope("bob-hmac", "message.send", { to: "agent://alice" });
    bob.send(marker);
    await alice.delivered(marker.id);
    const decisions = alice.deliveries.filter(({ envelope }) => envelope.payload.session_id === session_id);
    expect(decisions.map(({ envelope }) => envelope.id)).toEqual([first.id]);
  });

  test("and leaves the session pending", async () => {
    await carol.ask(decision("carol", "reject", session_id));
    expect(await bob.ask(decision("bob-hmac", "approve", session_id))).toMatchObject({ session_status: "approved" });
  });
});

describe("the notice of pending sessions", () => {
  const pendingNotices = (socket: AgentSocket) => socket.notices("pending_sessions");

  test("comes once after the ack of the register, with ids, requesters and times, and no contents", async () => {
    const asked = [request("target1", { purpose: "quiet" }), request("target1", { ttl_minutes: 5 })];
    const ids = [];
    for (const envelope of asked) ids.push((await alice.ask(envelope)).session_id);
    const target = await relay.online(two, "target1");
    await target.ask(relay.envelope("target1", "agent.register"));
    await target.ask(relay.envelope("target1", "agent.heartbeat"));

    expect(target.frames.map(({ frame }) => frame)).toEqual(["hello", "ack", "notice", "ack", "ack"]);
    const [notice] = pendingNotices(target);
    const times = { created_at_iso: expect.any(String), expires_at_iso: expect.any(String) };
    expect(notice).toEqual({
      frame: "notice",
      notice: "pending_sessions",
      agent_id: "agent://target1",
      total: 2,
      sessions: ids.map((session_id) => ({ session_id, requester: "agent://alice", ...times })),
    });
    const minutes = notice.sessions.map(
      (s: Frame) => (Date.parse(s.expires_at_iso) - Date.parse(s.created_at_iso)) / 60_000,
    );
    expect(minutes).toEqual([60, 5]);
  });

  test("holds every undecided session, delivered or not, and no decided one", async () => {
    const first = await relay.online(one, "target2");
    const [delivered, decided] = [await alice.ask(request("target2")), await alice.ask(request("target2"))];
    expect(delivered.target_delivery.status).toBe("online");
    await first.ask(decision("target2", "reject", decided.session_id));
    const second = await relay.online(two, "target2");
    expect(pendingNotices(first)).toEqual([]);
    expect(pendingNotices(second)).toMatchObject([{ total: 1, sessions: [{ session_id: delivered.session_id }] }]);
  });

  test("does not come when nothing waits", async () => {
    const target = await relay.online(one, "target3");
    await target.ask(relay.envelope("target3", "agent.heartbeat"));
    expect(pendingNotices(target)).toEqual([]);
  });

  test("comes with a heartbeat that brings the agent online, too", async () => {
    const { session_id } = await alice.ask(request("target4"));
    const target = await relay.connect(one);
    await target.ask(relay.envelope("target4", "agent.heartbeat"));
    await target.next("the notice", ({ notice }) => notice === "pending_sessions");
    expect(pendingNotices(target)).toMatchObject([{ agent_id: "agent://target4", sessions: [{ session_id }] }]);
  });

  test("is how a target that was away finds a session, which it can then decide", async () => {
    const { session_id } = await alice.ask(request("target5"));
    const target = await relay.online(two, "target5");
    await target.next("the notice", ({ notice }) => notice === "pending_sessions");
    const envelope = decision("target5", "approve", session_id);
    expect(await target.ask(envelope)).toMatchObject({ session_status: "approved" });
    await alice.delivered(envelope.id);
  });
});

test("At most 10 sessions of one requester pend at a target: its oldest gives way and is expired", async () => {
  const asker = await relay.online(one, "target7");
  const ask = (purpose = "p") =>
    relay.envelope("target7", "session.request", { to: "agent://target6", payload: { purpose } });
  const others = await carol.ask(
    relay.envelope("carol", "session.request", { to: "agent://target6", payload: { purpose: "p" } }),
  );
  const asked = Array.from({ length: 11 }, () => ask());
  for (const envelope of asked) asker.send(envelope);
  const last = await asker.ask(ask("last"));
  const acks = asked.map(({ id }) => asker.frames.find(({ envelope_id }) => envelope_id === id));
  const target = await relay.online(one, "target6");
  const { total, sessions } = await target.next("the notice", ({ notice }) => notice === "pending_sessions");
  expect(total).toBe(11);
  const kept = [others, ...acks.slice(2), last].map(({ session_id }) => session_id);
  expect(sessions.map(({ session_id }: Frame) => session_id)).toEqual(kept);
  const oldest = decision("target6", "approve", acks[0].session_id, "target7");
  expect(await target.ask(oldest)).toMatchObject({ code: "session_closed" });
  const repeat = await asker.ask(asked[0] as Frame);
  expect(repeat).toMatchObject({ duplicate: true, session_id: acks[0].session_id, session_status: "expired" });
  expect(await asker.ask(asked[10] as Frame)).toMatchObject({ duplicate: true, session_status: PENDING });
});

test("Who decides each of many sessions, most of which gave way, is told so of each, and keeps its connection", async () => {
  const asker = await relay.online(one, "target9");
  const decider = await relay.online(two, "target10");
  const asked = Array.from({ length: 40 }, () =>
    relay.envelope("target9", "session.request", { to: "agent://target10", payload: { purpose: "p" } }),
  );
  for (const envelope of asked) asker.send(envelope);
  await decider.delivered((asked.at(-1) as Frame).id);
  const ids = decider.frames.flatMap(({ session_id }) => session_id ?? []);
  const decisions = ids.map((id) => decision("target10", "reject", id, "target9"));
  for (const envelope of decisions) decider.send(envelope);
  const answers = await Promise.all(
    decisions.map(({ id }) => decider.next("an answer", ({ envelope_id }) => envelope_id === id)),
  );
  expect(answers.filter(({ code }) => code === "session_closed")).toHaveLength(30);
  const marker = relay.envelope("target10", "message.send", { to: "agent://alice" });
  expect(await decider.ask(marker)).toMatchObject({ accepted: true });
});

test("A requester opens at most 60 sessions a minute; what is refused says when to come again, and opens none", async () => {
  const asker = await relay.online(one, "target8");
  const ask = (n: number) =>
    relay.envelope("target8", "session.request", { to: `agent://target${n % 6}`, payload: { purpose: "p" } });
  const answers = [];
  for (let n = 0; n < 61; n += 1) answers.push(await asker.ask(ask(n)));
  expect(answers.slice(0, 60).map(({ frame }) => frame)).toEqual(Array(60).fill("ack"));
  const refused = answers[60] as Frame;
  expect(refused).toMatchObject({ frame: "error", code: "rate_limited", retry: "later" });
  expect(refused.retry_after_ms).toBeGreaterThan(0);
  expect(refused.retry_after_ms).toBeLessThanOrEqual(60_000);
  const marker = relay.envelope("target8", "message.send", { to: "agent://alice" });
  expect(await asker.ask(marker)).toMatchObject({ frame: "ack" });
});

describe("a decision that its requester was not online for", () => {
  const ask = (name: string) =>
    relay.envelope(name, "session.request", { to: "agent://carol", payload: { purpose: "p" } });

  test("is told when it comes online, after the ack, and reached nobody before", async () => {
    const asker = await relay.online(one, "target9");
    const [first, second] = [await asker.ask(ask("target9")), await asker.ask(ask("target9"))];
    await asker.close();
    const statuses = new Set<string>();
    while (!statuses.has("stale")) {
      const probe = relay.envelope("carol", "message.send", { to: "agent://target9" });
      statuses.add((await carol.ask(probe)).target_delivery.status);
    }
    await carol.ask(decision("carol", "approve", first.session_id, "target9"));
    await carol.ask(decision("carol", "reject", second.session_id, "target9"));
    const back = await relay.online(two, "target9");
    const notice = await back.next("the notice", (frame) => frame.notice === "decided_sessions");
    const decided_at_iso = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(notice).toEqual({
      frame: "notice",
      notice: "decided_sessions",
      agent_id: "agent://target9",
      sessions: [
        { session_id: first.session_id, target: "agent://carol", status: "approved", decided_at_iso },
        { session_id: second.session_id, target: "agent://carol", status: "rejected", decided_at_iso },
      ],
    });
    expect(back.frames.map(({ frame }) => frame).slice(0, 3)).toEqual(["hello", "ack", "notice"]);
    expect(back.deliveries).toEqual([]);
  });

  test("is not told to one who got it", async () => {
    const asker = await relay.online(one, "target10");
    const { session_id } = await asker.ask(ask("target10"));
    const approval = decision("carol", "approve", session_id, "target10");
    await carol.ask(approval);
    await asker.delivered(approval.id);
    const again = await relay.online(two, "target10");
    await again.ask(relay.envelope("target10", "agent.heartbeat"));
    expect(again.notices("decided_sessions")).toEqual([]);
  });
});

test("A decision that reuses id and time of an earlier message to the requester decides nothing", async () => {
  const { session_id } = await alice.ask(request("bob-hmac"));
  const message = relay.envelope("bob-hmac", "message.send", { to: "agent://alice" });
  await bob.ask(message);
  const fields = { to: "agent://alice", payload: { session_id }, id: message.id, ts: message.ts };
  const reused = relay.envelope("bob-hmac", "session.approve", fields);
  expect(await bob.ask(reused)).toMatchObject({ duplicate: true, session_id, session_status: PENDING });
  const decided = await bob.ask(decision("bob-hmac", "reject", session_id));
  expect(decided).toMatchObject({ session_status: "rejected" });
});
