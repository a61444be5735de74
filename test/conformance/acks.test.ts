import { describe, expect, test } from "@jest/globals";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol");
const BOB = "agent://bob-hmac";
const ONLINE = { status: "online", can_deliver_realtime: true };
const PENDING = "pending_until_session.approve_or_session.reject";
const pod = given(() => relay.startWsConnectors());
const alice = given(() => relay.online(pod, "alice"));
const bob = given(() => relay.online(pod, "bob-hmac"));

function request(purpose = "talk") {
  return relay.envelope("alice", "session.request", { to: BOB, payload: { purpose } });
}

describe.each(["agent.register", "agent.heartbeat"])("the ack of %s", (type) => {
  test("says that the agent is online, and since when it was last seen", async () => {
    const envelope = relay.envelope("alice", type);
    const ack = await alice.ask(envelope);
    expect(ack).toEqual({
      frame: "ack",
      envelope_id: envelope.id,
      type,
      accepted: true,
      presence: { agent_id: "agent://alice", status: "online", last_seen_iso: expect.any(String) },
    });
    expect(Math.abs(Date.parse(ack.presence.last_seen_iso) - Date.now())).toBeLessThan(5000);
  });

  test("does not depend on `to`, which is allowed and ignored", async () => {
    const ack = await alice.ask(relay.envelope("alice", type, { to: BOB }));
    expect(ack).toMatchObject({ accepted: true, presence: { agent_id: "agent://alice" } });
  });
});

test("agent.register takes a label, capabilities and whatever else its payload holds", async () => {
  const payload = { label: "x".repeat(120), capabilities: Array(32).fill("c"), anything: { else: [1] } };
  expect(await alice.ask(relay.envelope("alice", "agent.register", { payload }))).toMatchObject({ accepted: true });
});

describe("the ack of a message", () => {
  test("says that the target is online, and the message is delivered", async () => {
    const envelope = relay.envelope("alice", "message.send", { to: BOB });
    expect(await alice.ask(envelope)).toEqual({
      frame: "ack",
      envelope_id: envelope.id,
      type: "message.send",
      accepted: true,
      target_delivery: ONLINE,
    });
    await bob.delivered(envelope.id);
  });

  test("says that the target is stale when its connection is gone", async () => {
    const carol = await relay.online(pod, "carol");
    await carol.close();
    await until("carol is stale", async () => {
      const { target_delivery } = await alice.ask(relay.envelope("alice", "message.send", { to: "agent://carol" }));
      return target_delivery.status === "stale" && target_delivery.can_deliver_realtime === false;
    });
  });

  test("says that the target was not seen when it never registered", async () => {
    const ack = await alice.ask(relay.envelope("alice", "message.send", { to: "agent://nobody" }));
    expect(ack.target_delivery).toEqual({ status: "not_seen", can_deliver_realtime: false });
    expect(ack.next).toEqual({
      kept: false,
      do: expect.stringContaining("new id"),
      check: expect.stringMatching(/\/api\/onboarding\/check-online\?agent_id=agent:\/\/nobody$/),
    });
  });

  test("may be to the sender itself", async () => {
    const envelope = relay.envelope("alice", "message.send", { to: "agent://alice" });
    expect((await alice.ask(envelope)).target_delivery).toEqual(ONLINE);
    await alice.delivered(envelope.id);
  });

  test.each(["message.a", "message.task_result2", `message.${"x".repeat(32)}`])(
    "of an application's own type %s is that of message.send",
    async (type) => {
      const envelope = relay.envelope("alice", type, { to: BOB, payload: { own: true } });
      expect(await alice.ask(envelope)).toMatchObject({ type, accepted: true, target_delivery: ONLINE });
      expect((await bob.delivered(envelope.id)).envelope).toEqual(envelope);
    },
  );
});

describe("the ack of a session envelope", () => {
  test("names the pending session that a request opened", async () => {
    const envelope = request();
    expect(await alice.ask(envelope)).toEqual({
      frame: "ack",
      envelope_id: envelope.id,
      type: "session.request",
      accepted: true,
      target_delivery: ONLINE,
      session_id: expect.stringMatching(/^ses_[0-9a-hjkmnp-tv-z]{26}$/),
      session_status: PENDING,
    });
  });

  test.each([
    ["session.approve", "approved"],
    ["session.reject", "rejected"],
  ])("of %s says that it is %s", async (type, status) => {
    const { session_id } = await alice.ask(request());
    const decision = relay.envelope("bob-hmac", type, { to: "agent://alice", payload: { session_id, reason: "so" } });
    expect(await bob.ask(decision)).toEqual({
      frame: "ack",
      envelope_id: decision.id,
      type,
      accepted: true,
      target_delivery: ONLINE,
      session_id,
      session_status: status,
    });
  });

  test("names another session for every request", async () => {
    const [one, two] = [await alice.ask(request()), await alice.ask(request())];
    expect(one.session_id).not.toBe(two.session_id);
  });

  test("tells the requester of an absent target that nothing was delivered", async () => {
    const envelope = relay.envelope("alice", "session.request", { to: "agent://nobody", payload: { purpose: "p" } });
    expect(await alice.ask(envelope)).toMatchObject({
      accepted: true,
      target_delivery: { status: "not_seen", can_deliver_realtime: false },
      session_status: PENDING,
      next: { kept: false, do: expect.stringContaining("pending") },
    });
  });
});
