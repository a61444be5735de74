import { expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { ownTime } from "../support/own-time.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";

const WITHIN_MS = 1000;
const relay = useRelay("alice", "bob-hmac");
giveUpCalls();
const one = given(() => relay.startWsConnector());
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const alice = given(() => relay.online(one, "alice"));
const bob = given(() => relay.online(two, "bob-hmac"));

test("connections outlive a Redis that died and came back empty, and are present again", async () => {
  await alice.ask(message("before"));
  const lostWindow = await view.windowId();
  await relay.redis.kill();
  for (const envelope of [message("lost"), heartbeat("alice"), message("lost too")]) {
    expect(await refusalOf(alice, envelope)).toBe("unavailable");
  }
  expect((await fetch(`${one.url}/ready`)).status).toBe(503);
  expect((await fetch(`${one.url}/health`)).status).toBe(200);

  await relay.redis.start();
  await present(alice, "alice");
  await present(bob, "bob-hmac");
  expect(await view.windowId()).not.toBe(lostWindow);
  expect((await view.counters()).published_envelopes).toBeUndefined();

  await expectFlow();
  const again = heartbeat("bob-hmac");
  expect(await bob.ask(again)).not.toHaveProperty("duplicate");
  expect(await bob.ask(again)).toMatchObject({ duplicate: true, presence: { status: "online" } });
  expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
  await until("both pods are ready", async () => (await ready(one)) && (await ready(two)));
});

test("while Redis hangs every envelope is refused within a second; sent again later, it is delivered once", async () => {
  const first = message("first");
  const second = message("second");
  await relay.redis.pause();
  expect(await refusalOf(alice, first)).toBe("unavailable");
  expect(await refusalOf(alice, second)).toBe("unavailable");
  expect(await refusalOf(alice, first)).toBe("unavailable");
  expect(await refusalOf(bob, heartbeat("bob-hmac"))).toBe("unavailable");
  await relay.redis.resume();

  for (const envelope of [first, second]) {
    await until("it is acknowledged", async () => (await alice.ask(envelope)).frame === "ack");
    expect(await alice.ask(envelope)).toMatchObject({ duplicate: true });
  }
  await present(bob, "bob-hmac");
  await expectFlow();
  for (const { id } of [first, second]) {
    expect(bob.deliveries.filter(({ envelope }) => envelope.id === id).length).toBeLessThanOrEqual(1);
  }
  expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
});

/** The code of the refusal, which must come within a second. */
async function refusalOf(socket: AgentSocket, envelope: Frame): Promise<string> {
  const answer = await Promise.race([socket.ask(envelope), ownTime(WITHIN_MS)]);
  expect(answer).not.toBe("late");
  return (answer as Frame).code;
}

async function present(socket: AgentSocket, name: string): Promise<void> {
  await until(`${name} is present again`, async () => (await socket.ask(heartbeat(name))).frame === "ack");
  expect(await view.isConnected(name)).toBe(true);
}

async function expectFlow(): Promise<void> {
  const there = message("there");
  const back = relay.envelope("bob-hmac", "message.send", { to: "agent://alice", payload: { message: "back" } });
  expect(await alice.ask(there)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  expect(await bob.ask(back)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await Promise.all([bob.delivered(there.id), alice.delivered(back.id)]);
}

function message(text: string): Frame {
  return relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { message: text } });
}

function heartbeat(name: string): Frame {
  return relay.envelope(name, "agent.heartbeat");
}

async function ready(pod: Pod): Promise<boolean> {
  return (await fetch(`${pod.url}/ready`)).ok;
}
