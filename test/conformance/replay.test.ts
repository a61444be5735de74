import { describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol", "dave", "erin", "frank");
const BOB = "agent://bob-hmac";
const PENDING = "pending_until_session.approve_or_session.reject";
const HOST = "relay.example";
const one = given(() => relay.startWsConnector({ RELAY_PUBLIC_HOSTS: HOST }));
const two = given(() => relay.startWsConnector({ RELAY_PUBLIC_HOSTS: HOST }));
const alice = given(() => relay.online(one, "alice"));
const bob = given(() => relay.online(two, "bob-hmac"));

const message = (fields: object = {}): Frame => relay.envelope("alice", "message.send", { to: BOB, ...fields });
const request = (): Frame => relay.envelope("alice", "session.request", { to: BOB, payload: { purpose: "p" } });

function decide(verdict: "approve" | "reject", session_id: string): Frame {
  const fields = { to: "agent://alice", payload: { session_id } };
  return relay.envelope("bob-hmac", `session.${verdict}`, fields);
}

/** How often `target` got the envelope, once everything that was sent before this call has arrived. */
async function timesDelivered(id: string, sender: AgentSocket, target: AgentSocket, marker: Frame): Promise<number> {
  expect(await sender.ask(marker)).toMatchObject({ accepted: true });
  await target.delivered(marker.id);
  return target.deliveries.filter(({ envelope }) => envelope.id === id).length;
}

test("A message that comes again is acknowledged as a duplicate and not delivered again", async () => {
  const envelope = message();
  const first = await alice.ask(envelope);
  expect(first.duplicate).toBeUndefined();
  expect(await alice.ask(envelope)).toEqual({ ...first, duplicate: true });
  expect(await timesDelivered(envelope.id, alice, bob, message())).toBe(1);
});

test("So is one that comes again in the same moment", async () => {
  const envelope = message();
  for (let n = 0; n < 10; n += 1) alice.send(envelope);
  expect(await timesDelivered(envelope.id, alice, bob, message())).toBe(1);
  const acks = alice.frames.filter(({ envelope_id }) => envelope_id === envelope.id);
  expect(acks.map(({ frame, duplicate }) => [frame, duplicate])).toEqual([
    ["ack", undefined],
    ...Array(9).fill(["ack", true]),
  ]);
});

test("So is one that comes again through another pod", async () => {
  const envelope = relay.envelope("carol", "message.send", { to: BOB });
  await (await relay.online(one, "carol")).ask(envelope);
  const moved = await relay.online(two, "carol");
  expect(await moved.ask(envelope)).toMatchObject({ accepted: true, duplicate: true });
  const marker = relay.envelope("carol", "message.send", { to: BOB });
  expect(await timesDelivered(envelope.id, moved, bob, marker)).toBe(1);
});

test("What met nobody reaches its target with a new id: the same envelope is a duplicate, though its ack says online", async () => {
  const met = relay.envelope("alice", "message.send", { to: "agent://dave" });
  expect((await alice.ask(met)).next).toMatchObject({ kept: false });
  const dave = await relay.online(two, "dave");
  const again = await alice.ask(met);
  expect(again).toMatchObject({ duplicate: true, target_delivery: { status: "online" } });
  expect(again.next).toBeUndefined();
  const marker = () => relay.envelope("alice", "message.send", { to: "agent://dave" });
  expect(await timesDelivered(met.id, alice, dave, marker())).toBe(0);
  const anew = marker();
  expect(await timesDelivered(anew.id, alice, dave, anew)).toBe(1);
});

test("The ack of a duplicate says how the target is now", async () => {
  const envelope = relay.envelope("alice", "message.send", { to: "agent://carol" });
  const carol = await relay.online(two, "carol");
  expect((await alice.ask(envelope)).target_delivery.status).toBe("online");
  await carol.close();
  const later = await relay.connect(two);
  await later.ask(relay.envelope("carol", "agent.register"));
  await later.close();
  const statuses = new Set<string>();
  while (!statuses.has("stale")) statuses.add((await alice.ask(envelope)).target_delivery.status);
});

test("The same id with another ts, under another key, or to another target, is another envelope", async () => {
  const envelope = message();
  const later = message({ id: envelope.id, ts: envelope.ts + 1 });
  const bobs = relay.envelope("bob-hmac", "message.send", { to: BOB, id: envelope.id, ts: envelope.ts });
  const carols = relay.envelope("alice", "message.send", { to: "agent://carol", id: envelope.id, ts: envelope.ts });
  for (const [socket, one] of [
    [alice, envelope],
    [alice, carols],
    [alice, later],
    [bob, bobs],
  ] as const) {
    expect((await socket.ask(one)).duplicate).toBeUndefined();
  }
  expect(await timesDelivered(envelope.id, alice, bob, message())).toBe(3);
});

test("The same id, ts and key with another content is taken for a repeat: the signer broke its promise", async () => {
  const envelope = message();
  const other = message({ id: envelope.id, ts: envelope.ts, payload: { other: true } });
  await alice.ask(envelope);
  expect(await alice.ask(other)).toMatchObject({ duplicate: true });
  expect(await timesDelivered(envelope.id, alice, bob, message())).toBe(1);
});

describe("a session request that comes again", () => {
  test("names the same session, and is not delivered again", async () => {
    const envelope = request();
    const first = await alice.ask(envelope);
    expect(await alice.ask(envelope)).toEqual({ ...first, duplicate: true });
    expect(await timesDelivered(envelope.id, alice, bob, message())).toBe(1);
  });

  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("says that it is decided after session.%s", async (verdict, session_status) => {
    const envelope = request();
    const first = await alice.ask(envelope);
    expect(first.session_status).toBe(PENDING);
    await bob.ask(decide(verdict, first.session_id));
    expect(await alice.ask(envelope)).toEqual({ ...first, duplicate: true, session_status });
  });
});

test("A decision that comes again is acknowledged again, and not delivered again", async () => {
  const { session_id } = await alice.ask(request());
  const decision = decide("approve", session_id);
  const first = await bob.ask(decision);
  expect(await bob.ask(decision)).toEqual({ ...first, duplicate: true });
  const marker = relay.envelope("bob-hmac", "message.send", { to: "agent://alice" });
  expect(await timesDelivered(decision.id, bob, alice, marker)).toBe(1);
});

describe("an agent.register that comes again", () => {
  test("through the owner is acknowledged as a duplicate", async () => {
    const register = relay.envelope("carol", "agent.register");
    const socket = await relay.connect(one);
    await socket.ask(register);
    expect(await socket.ask(register)).toMatchObject({ duplicate: true, presence: { status: "online" } });
    await socket.close();
  });

  test("through somebody else takes nothing over: who saw it pass does not become the agent", async () => {
    const register = relay.envelope("carol", "agent.register");
    const owner = await relay.connect(one);
    await owner.ask(register);
    const thief = await relay.connect(two);
    expect(await thief.ask(register)).toMatchObject({ accepted: true, duplicate: true });
    const envelope = relay.envelope("alice", "message.send", { to: "agent://carol" });
    alice.send(envelope);
    await owner.delivered(envelope.id);
    expect(thief.deliveries).toEqual([]);
    const forged = relay.envelope("carol", "message.send", { to: BOB });
    expect(await thief.ask(forged)).toMatchObject({ code: "not_registered" });
  });
});

/** Nobody here has seen them before: as at another relay, or where Redis was lost. */
describe.each([
  ["agent.register", "erin"],
  ["agent.heartbeat", "frank"],
])("an %s that somebody saw", (type, name) => {
  const saying = (payload: object) => relay.envelope(name, type, { payload });

  test("at another relay gives nobody the agent here", async () => {
    const thief = await relay.connect(one);
    const seen = saying({ relay: "other.example", connection_id: "con_there" });
    expect(await thief.ask(seen)).toMatchObject({ code: "wrong_relay", hint: expect.stringContaining(HOST) });
    const sent = await alice.ask(relay.envelope("alice", "message.send", { to: `agent://${name}` }));
    expect(sent).toMatchObject({ target_delivery: { status: "not_seen" } });
  });

  test("on another connection gives nobody the agent there, and its owner may use it", async () => {
    const [owner, thief] = [await relay.connect(one), await relay.connect(two)];
    const seen = saying({ relay: HOST, connection_id: owner.connectionId });
    expect(await thief.ask(seen)).toMatchObject({ code: "wrong_connection" });
    expect(await owner.ask(seen)).toMatchObject({ accepted: true, presence: { status: "online" } });
    expect(await thief.ask(seen)).toMatchObject({ code: "wrong_connection" });
  });
});
