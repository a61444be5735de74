import { describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { type Congested, congest } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol", "dave", "erin", "frank");
/** The sender is as fast as it can be: what it is held to stands elsewhere. */
const pod = given(() => relay.startWsConnector({ RELAY_BYTES_PER_SECOND: "0", RELAY_ENVELOPES_PER_SECOND: "0" }));
/** Asked about presence again and again. */
const gateway = given(() => relay.startGateway({ RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" }));
const alice = given(() => relay.online(pod, "alice"));
const http = new HttpClient();
/** It reads nothing until it has lost its agent, and again from then on: the close waits for no slow test. */
const stalled = given(async () => {
  const socket = await relay.online(pod, "frank");
  await congest(relay, alice, socket, "frank");
  const lost = until("frank is stale", async () => (await checkOnline("frank")).status === "stale", 30_000);
  const closed = lost.then(async () => {
    socket.socket.resume();
    return await socket.untilClosed();
  });
  // The relay may end before.
  closed.catch(() => {});
  return { closed };
});
const TEXT = "x".repeat(30_000);
const STALE = { status: "stale", can_deliver_realtime: false };
const ONLINE = { status: "online", can_deliver_realtime: true };

const checkOnline = async (name: string): Promise<Frame> =>
  (await http.get(`${gateway.url}/api/onboarding/check-online?agent_id=agent://${name}`)).body;

/** A message with a number in it. */
const numbered = (name: string, n: number, payload = {}) =>
  relay.envelope("alice", "message.send", { to: `agent://${name}`, payload: { n, ...payload } });

async function tell(name: string, n: number, payload = {}): Promise<Frame> {
  return (await alice.ask(numbered(name, n, payload))).target_delivery;
}

const numbers = ({ deliveries }: AgentSocket) => deliveries.map(({ envelope }) => envelope.payload.n);
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

describe("a client that does not read", () => {
  let filled: Congested;
  /** It registers another agent while it is congested. */
  const slow = given(async () => {
    const socket = await relay.online(pod, "carol");
    filled = await congest(relay, alice, socket, "carol");
    socket.send(relay.envelope("dave", "agent.register"));
    await until("dave is there", async () => (await checkOnline("dave")).status === "online");
    return socket;
  });

  test("has an agent that is online and congested, and acks for it say stale: nothing is kept", async () => {
    expect(await checkOnline("carol")).toMatchObject({
      ...{ status: "online", severity: "ok", can_deliver_realtime: false, reason: "congested" },
    });
    const envelope = relay.envelope("alice", "session.request", {
      to: "agent://carol",
      payload: { purpose: "to talk" },
    });
    expect(await alice.ask(envelope)).toMatchObject({ target_delivery: STALE, next: { kept: false } });
  });

  test("has every agent that it registers congested, from the start", async () => {
    expect(await checkOnline("dave")).toMatchObject({ status: "online", reason: "congested" });
    expect(await tell("dave", 0)).toEqual(STALE);
  });

  test("keeps nobody else waiting", async () => {
    const bob = await relay.online(pod, "bob-hmac");
    for (let n = 0; n < 20; n += 1) expect(await tell("bob-hmac", n)).toEqual(ONLINE);
    await until("bob has everything", () => bob.deliveries.length === 20);
    expect(numbers(bob)).toEqual(upTo(20));
  });

  test("gets all that was acked in realtime, in order and once, when it reads again, and then what is new", async () => {
    slow.socket.resume();
    await until("it has caught up", async () => (await checkOnline("carol")).can_deliver_realtime);
    expect(await checkOnline("carol")).not.toHaveProperty("reason");
    expect([await tell("carol", 1000), await tell("dave", 1001)]).toEqual([ONLINE, ONLINE]);
    await until("everything has arrived", () => [1000, 1001].every((n) => numbers(slow).includes(n)));
    expect(numbers(slow).filter((n) => !filled.unknown.has(n))).toEqual([...filled.promised, 1000, 1001]);
  });
});

test("A connection that takes a congested agent over is delivered to at once", async () => {
  const slow = await relay.online(pod, "erin");
  await congest(relay, alice, slow, "erin");
  const next = await relay.online(pod, "erin");
  expect(await tell("erin", 0)).toEqual(ONLINE);
  await until("it has arrived", () => next.deliveries.length === 1);
  slow.socket.terminate();
});

test("A burst to a client that reads arrives as it was acked, however long it is", async () => {
  const bob = await relay.online(pod, "bob-hmac");
  const envelopes = upTo(300).map((n) => numbered("bob-hmac", n, { text: TEXT }));
  const acks = await Promise.all(envelopes.map((envelope) => alice.ask(envelope)));
  // A busy machine may be refused some as unavailable; what counts is that no ack lies.
  const sent = upTo(300).filter((n) => acks[n].target_delivery?.can_deliver_realtime);
  await until("all of it has arrived", () => bob.deliveries.length >= sent.length);
  expect(numbers(bob)).toEqual(sent);
  expect(bob.closed).toBeUndefined();
});

test("A client that reads nothing for 10 s loses its agent and its connection", async () => {
  await stalled.closed;
}, 60_000);
