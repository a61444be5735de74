import { beforeEach, expect, test } from "@jest/globals";
import type { AgentSocket } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";
import { keepChannels, waitForRedis } from "../support/wait-for-redis.ts";

/** Pod one hears from Redis through a proxy: its answers and its channel can be made to overtake each other. */

const LINKS = ["ws-connector", "ws-connector-channel"] as const;
const relay = useRelay("rover-hmac", "anchor-hmac", "sender-hmac");
giveUpCalls();
const proxy = given(() => relay.proxy());
const one = given(() => relay.startWsConnector({ REDIS_URL: proxy.url }));
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());
beforeEach(async () => {
  for (const link of LINKS) proxy.letGo(link);
  await until("pod one has Redis again", async () => (await fetch(`${one.url}/ready`)).ok);
});

test("a takeover that overtakes the answer to a register still ends the older connection", async () => {
  waitForRedis();
  const left = await relay.connect(one);
  const isTaken = async () => (await view.route("rover-hmac"))?.connection === left.connectionId;
  await proxy.askUnheard("ws-connector", left, relay.envelope("rover-hmac", "agent.register"), isTaken);
  const right = await relay.online(two, "rover-hmac");
  await until("the pod was told", () => proxy.hasSaid("ws-connector-channel", `superseded ${left.connectionId}`));
  proxy.letGo("ws-connector");

  expect(await left.untilClosed()).toBe(4409);
  expect(saidTo(left)).toEqual(["hello", "ack", "superseded"]);
  expect((await view.route("rover-hmac"))?.connection).toBe(right.connectionId);
  await right.close();
});

test("a connection that registered again ignores the notice of the takeover before", async () => {
  waitForRedis();
  const left = await relay.online(one, "anchor-hmac");
  await left.ask(relay.envelope("rover-hmac", "agent.register"));
  proxy.holdReplies("ws-connector-channel");
  const right = await relay.online(two, "rover-hmac");
  await left.ask(relay.envelope("rover-hmac", "agent.register"));
  expect(await right.untilClosed()).toBe(4409);
  proxy.letGo("ws-connector-channel");

  const sender = await relay.online(two, "sender-hmac");
  await sender.ask(relay.envelope("sender-hmac", "message.send", { to: "agent://rover-hmac" }));
  await left.next("the message", ({ frame }) => frame === "deliver");
  expect(left.notices("superseded")).toEqual([]);
  await Promise.all([left.close(), sender.close()]);
});

test("the late close of a connection that never heard of its takeover leaves the new owner's route", async () => {
  waitForRedis();
  const left = await relay.online(one, "anchor-hmac");
  await left.ask(relay.envelope("rover-hmac", "agent.register"));
  proxy.holdReplies("ws-connector-channel");
  const right = await relay.online(two, "rover-hmac");
  await left.close();
  await until("what the connection carried is released", async () => !(await view.isConnected("anchor-hmac")));
  expect((await view.route("rover-hmac"))?.connection).toBe(right.connectionId);
  await right.close();
});

test("the heartbeat of a superseded connection is refused, changes nothing, and ends the connection", async () => {
  keepChannels();
  const left = await relay.online(one, "rover-hmac");
  proxy.holdReplies("ws-connector-channel");
  const right = await relay.online(two, "rover-hmac");
  const [route, seen, counters] = await Promise.all([
    view.route("rover-hmac"),
    view.lastSeen("rover-hmac"),
    view.counters(),
  ]);

  expect(await left.ask(relay.envelope("rover-hmac", "agent.heartbeat"))).toMatchObject({ code: "not_registered" });
  expect(await left.untilClosed()).toBe(4409);
  expect(left.notices("superseded")).toMatchObject([{ agent_id: "agent://rover-hmac", epoch: route?.epoch }]);
  expect(await view.route("rover-hmac")).toEqual(route);
  expect(await view.lastSeen("rover-hmac")).toBe(seen);
  expect(await view.counters()).toEqual(counters);
  await right.close();
});

test("what a connection was promised before its takeover reaches it, though a heartbeat hears of the takeover first", async () => {
  waitForRedis();
  const left = await relay.online(one, "rover-hmac");
  const sender = await relay.online(two, "sender-hmac");
  proxy.holdReplies("ws-connector-channel");
  const ack = await sender.ask(relay.envelope("sender-hmac", "message.send", { to: "agent://rover-hmac" }));
  expect(ack.target_delivery.can_deliver_realtime).toBe(true);
  const right = await relay.online(two, "rover-hmac");
  expect(await left.ask(relay.envelope("rover-hmac", "agent.heartbeat"))).toMatchObject({ code: "not_registered" });
  proxy.letGo("ws-connector-channel");

  expect(await left.untilClosed()).toBe(4409);
  expect(saidTo(left)).toEqual(["hello", "ack", "not_registered", "deliver", "superseded"]);
  await Promise.all([sender.close(), right.close()]);
});

test("what was promised while a pod heard nothing of Redis reaches its agent when Redis is heard again", async () => {
  const rover = await relay.online(one, "rover-hmac");
  const sender = await relay.online(two, "sender-hmac");
  for (const link of LINKS) proxy.holdReplies(link);
  const sent = relay.envelope("sender-hmac", "message.send", { to: "agent://rover-hmac" });
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  const tried = new Set(proxy.links("ws-connector"));
  await until("the pod has looked for Redis again and again", () => {
    for (const link of proxy.links("ws-connector")) tried.add(link);
    return tried.size > 4;
  });
  for (const link of LINKS) proxy.letGo(link);

  await rover.delivered(sent.id);
  await Promise.all([rover.close(), sender.close()]);
});

test("a takeover that overtakes the answer to a heartbeat ends the connection at once, and the heartbeat brings nothing back", async () => {
  waitForRedis();
  const left = await relay.online(one, "rover-hmac");
  const anchor = await relay.online(one, "anchor-hmac");
  const sender = await relay.online(two, "sender-hmac");
  proxy.holdReplies("ws-connector-channel");
  const right = await relay.online(two, "rover-hmac");
  const isUndone = () => proxy.hasSaid("ws-connector", "$1\r\n-\r\n");
  await proxy.askUnheard("ws-connector", left, relay.envelope("rover-hmac", "agent.heartbeat"), isUndone);
  await sender.ask(relay.envelope("sender-hmac", "message.send", { to: "agent://anchor-hmac" }));
  proxy.letGo("ws-connector-channel");
  await anchor.next("what was published after the takeover", ({ frame }) => frame === "deliver");
  proxy.letGo("ws-connector");

  expect(await left.untilClosed()).toBe(4409);
  expect(saidTo(left)).toEqual(["hello", "ack", "superseded"]);
  expect((await view.route("rover-hmac"))?.connection).toBe(right.connectionId);
  await Promise.all([anchor.close(), sender.close(), right.close()]);
});

/** Frames in short: code of a refusal, name of a notice, else the kind of frame. What was asked too late was asked again. */
function saidTo({ frames }: AgentSocket): string[] {
  return frames.map(({ code, notice, frame }) => code ?? notice ?? frame).filter((said) => said !== "unavailable");
}
