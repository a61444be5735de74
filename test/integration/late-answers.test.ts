import { beforeEach, expect, test } from "@jest/globals";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { scrape } from "../support/http.ts";
import { until } from "../support/until.ts";
import { waitForRedis } from "../support/use.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";

/** Pod one hears from Redis through a proxy: its answers, its channel and the ends of connections overtake each other. */

const LINKS = ["ws-connector", "ws-connector-channel"] as const;
const HASTY = Array.from({ length: 20 }, (_, n) => `hasty-${n}`);
const relay = useRelay("witness-hmac", "rover-hmac", "held-hmac", "carrier-hmac", "later-hmac", "open-hmac", ...HASTY);
giveUpCalls();
const proxy = given(() => relay.proxy());
const metrics = given(async () => ({ port: String(await freePort()) }));
const one = given(() => relay.startWsConnector({ REDIS_URL: proxy.url, METRICS_PORT: metrics.port }));
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const witness = given(() => relay.online(two, "witness-hmac"));
// A pod that had no answer for 450 ms gives its link to Redis up. It refuses all registers until it has another link.
async function podIsReady(): Promise<void> {
  for (const link of LINKS) proxy.letGo(link);
  await until("the pod is ready", async () => (await fetch(`${one.url}/ready`)).ok);
}
beforeEach(podIsReady);

const untilGone = (name: string) => until("the route is gone", async () => !(await view.isConnected(name)));
const message = (to: string) => relay.envelope("witness-hmac", "message.send", { to: `agent://${to}` });
/** A connection that its pod reads while a register is in flight: it reads no other one before the first is answered. */
const readConnection = () => relay.online(one, "carrier-hmac");

test("a register whose signature was checked after its connection closed leaves no route", async () => {
  const checked = await relay.online(one, "rover-hmac");
  for (const [n, name] of HASTY.entries()) {
    const socket = await relay.connect(one);
    socket.send(relay.envelope(name, "agent.register"));
    if (n % 2 === 0) socket.socket.terminate();
    else socket.socket.close();
  }
  const connections = async () => (await scrape(`http://127.0.0.1:${metrics.port}/metrics`)).value("relay_connections");
  await until("the pod saw them go", async () => (await connections()) === 1);
  // What the last one sends is checked and accepted after all that came before.
  for (let n = 0; n < 5; n += 1) {
    await checked.ask(relay.envelope("rover-hmac", "message.send", { to: "agent://never-seen" }));
  }
  for (const name of HASTY) expect(await view.isConnected(name)).toBe(false);
  await checked.close();
});

test("a register that Redis answered after its connection closed leaves no route", async () => {
  const socket = await readConnection();
  waitForRedis();
  const isTaken = () => view.isConnected("held-hmac");
  await proxy.askUnheard("ws-connector", socket, relay.envelope("held-hmac", "agent.register"), isTaken);
  await socket.close();
  proxy.letGo("ws-connector");
  await untilGone("held-hmac");
});

test("a route whose release Redis refused is released when Redis takes it, without another close or reconnect", async () => {
  const socket = await relay.online(one, "held-hmac");
  const { client } = view;
  const route = (await view.keysOf("held-hmac")).route;
  await client.multi().rename(route, `${route}:aside`).set(route, "no hash").exec();
  await socket.close();
  await until("Redis refused", () => relay.log.some((line) => line.includes("WRONGTYPE") && line.includes("release")));
  await client.rename(`${route}:aside`, route);
  await untilGone("held-hmac");
});

test("a register that Redis took, whose connection closed before its time was over without an answer, leaves no route", async () => {
  const socket = await readConnection();
  const isTaken = () => view.isConnected("later-hmac");
  do {
    await podIsReady();
    proxy.swallowAfter("agent://later-hmac");
    const before = socket.frames.length;
    socket.send(relay.envelope("later-hmac", "agent.register"));
    await until("Redis took it, or not in time", async () => (await isTaken()) || socket.frames.length > before);
  } while (!(await isTaken()));
  await socket.close();
  await untilGone("later-hmac");
});

test("a register refused as unavailable, whose connection then closed, leaves no route either", async () => {
  const socket = await relay.connect(one);
  await takenAndRefused(socket, relay.envelope("later-hmac", "agent.register"));
  await socket.close();
  await untilGone("later-hmac");
});

test("a register refused as unavailable and sent again is acknowledged on the same connection, which then owns", async () => {
  const socket = await relay.connect(one);
  const register = relay.envelope("open-hmac", "agent.register");
  const request = { to: "agent://open-hmac", payload: { purpose: "talk" } };
  await witness.ask(relay.envelope("witness-hmac", "session.request", request));
  await takenAndRefused(socket, register);
  await until("it is acknowledged", async () => (await socket.ask(register)).frame === "ack");
  const isFirstAck = ({ frame }: Frame) => frame === "ack";
  expect(socket.frames.find(isFirstAck)).toMatchObject({ duplicate: true, presence: { status: "online" } });
  await socket.next("its pending session", ({ notice, total }) => notice === "pending_sessions" && total === 1);
  expect(await socket.ask(register)).toMatchObject({ duplicate: true });
  expect(socket.notices("pending_sessions")).toHaveLength(1);
  await witness.ask(message("open-hmac"));
  await socket.next("the message", ({ frame }) => frame === "deliver");
});

test("what a connection was promised before its takeover reaches it, though a heartbeat hears of the takeover first", async () => {
  waitForRedis();
  const left = await relay.online(one, "rover-hmac");
  proxy.holdReplies("ws-connector-channel");
  const ack = await witness.ask(message("rover-hmac"));
  expect(ack.target_delivery.can_deliver_realtime).toBe(true);
  const right = await relay.online(two, "rover-hmac");
  expect(await left.ask(relay.envelope("rover-hmac", "agent.heartbeat"))).toMatchObject({ code: "not_registered" });
  proxy.letGo("ws-connector-channel");

  expect(await left.untilClosed()).toBe(4409);
  // Frames in short: code of a refusal, name of a notice, else the kind of frame. What was asked too late was asked again.
  const said = left.frames.map(({ code, notice, frame }) => code ?? notice ?? frame);
  expect(said.filter((word) => word !== "unavailable")).toEqual([
    ...["hello", "ack", "not_registered", "deliver", "superseded"],
  ]);
  await right.close();
});

test("what was promised while a pod heard nothing of Redis reaches its agent when Redis is heard again", async () => {
  const rover = await relay.online(one, "rover-hmac");
  for (const link of LINKS) proxy.holdReplies(link);
  const sent = message("rover-hmac");
  expect(await witness.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  const before = new Set(proxy.links("ws-connector"));
  const tried = new Set<unknown>();
  await until("the pod has looked for Redis again and again", () => {
    for (const link of proxy.links("ws-connector")) if (!before.has(link)) tried.add(link);
    return tried.size > 3;
  });
  for (const link of LINKS) proxy.letGo(link);

  await rover.delivered(sent.id);
});

/** Redis takes the register, and its pod has no answer in time. A machine that is busy for half a second asks Redis too late. */
async function takenAndRefused(socket: AgentSocket, register: Envelope): Promise<void> {
  do {
    await podIsReady();
    proxy.swallowAfter(register.from);
    expect(await socket.ask(register)).toMatchObject({ code: "unavailable" });
  } while (!(await view.isConnected(register.from.replace("agent://", ""))));
}
