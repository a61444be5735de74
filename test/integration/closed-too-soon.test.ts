import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { watchLeaks } from "../support/leaks.ts";
import type { RedisProxy } from "../support/redis-proxy.ts";
import { type Pod, TestRelay } from "../support/relay.ts";
import { until } from "../support/until.ts";
import type { WindowView } from "../support/window-view.ts";

const HASTY = Array.from({ length: 20 }, (_, n) => `hasty-${n}`);
const relay = new TestRelay("witness", "held-hmac", "late-hmac", "later-hmac", "open-hmac", ...HASTY);
const noLeaks = watchLeaks();
let proxy: RedisProxy;
let pod: Pod;
let view: WindowView;
let witness: AgentSocket;

beforeAll(async () => {
  await relay.start();
  proxy = await relay.proxy();
  pod = await relay.startWsConnector({ REDIS_URL: proxy.url });
  view = relay.view();
  witness = await relay.online(pod, "witness");
});
beforeEach(() => proxy.letGo("ws-connector"));
afterAll(async () => {
  await relay.stop();
  await noLeaks();
});

test("a register whose signature was checked after its connection closed leaves no route", async () => {
  for (const [n, name] of HASTY.entries()) {
    const socket = await relay.connect(pod);
    socket.send(relay.envelope(name, "agent.register"));
    if (n % 2 === 0) socket.socket.terminate();
    else socket.socket.close();
  }
  await until("the pod saw them go", async () => (await connections()) === 1);
  // The witness's own heartbeats are checked and accepted after all that came before.
  for (let beat = 0; beat < 5; beat += 1) await witness.ask(relay.envelope("witness", "agent.heartbeat"));
  for (const name of HASTY) expect(await view.isConnected(name)).toBe(false);
});

test("a register that Redis answered after its connection closed leaves no route", async () => {
  const socket = await relay.connect(pod);
  proxy.holdReplies("ws-connector");
  socket.send(relay.envelope("held-hmac", "agent.register"));
  await until("Redis took the register", () => view.isConnected("held-hmac"));
  await socket.close();
  proxy.letGo("ws-connector");
  await until("the route is gone", async () => !(await view.isConnected("held-hmac")));
});

test("a register that Redis took after its connection closed and its time was over leaves no route", async () => {
  const socket = await relay.connect(pod);
  await relay.redis.pause();
  socket.send(relay.envelope("late-hmac", "agent.register"));
  await until("the register is on its way", () => proxy.hasAsked(socket.connectionId));
  await socket.close();
  await until("the pod gave up waiting", () => relay.log.some((line) => line.includes("did not carry out a script")));
  await relay.redis.resume();
  await until("Redis took the register", async () => (await view.lastSeen("late-hmac")) !== null);
  await until("the route is gone", async () => !(await view.isConnected("late-hmac")));
});

test("a register refused as unavailable, whose connection then closed, leaves no route either", async () => {
  await until("the pod is back", async () => (await witness.ask(beat())).frame === "ack");
  const socket = await relay.connect(pod);
  await relay.redis.pause();
  expect(await socket.ask(relay.envelope("later-hmac", "agent.register"))).toMatchObject({ code: "unavailable" });
  await socket.close();
  await relay.redis.resume();
  await until("Redis took the register", async () => (await view.lastSeen("later-hmac")) !== null);
  await until("the route is gone", async () => !(await view.isConnected("later-hmac")));
});

test("a register refused as unavailable and sent again is acknowledged on the same connection, which then owns", async () => {
  await until("the pod is back", async () => (await witness.ask(beat())).frame === "ack");
  const socket = await relay.connect(pod);
  const register = relay.envelope("open-hmac", "agent.register");
  const request = { to: "agent://open-hmac", payload: { purpose: "talk" } };
  await witness.ask(relay.envelope("witness", "session.request", request));
  await relay.redis.pause();
  expect(await socket.ask(register)).toMatchObject({ code: "unavailable" });
  await relay.redis.resume();
  await until("Redis took the register", () => view.isConnected("open-hmac"));
  await until("it is acknowledged", async () => (await socket.ask(register)).frame === "ack");
  const isFirstAck = ({ frame }: Frame) => frame === "ack";
  expect(socket.frames.find(isFirstAck)).toMatchObject({ duplicate: true, presence: { status: "online" } });
  await socket.next("its pending session", ({ notice, total }) => notice === "pending_sessions" && total === 1);
  expect(await socket.ask(register)).toMatchObject({ duplicate: true });
  expect(socket.notices("pending_sessions")).toHaveLength(1);
  await witness.ask(relay.envelope("witness", "message.send", { to: "agent://open-hmac" }));
  await socket.next("the message", ({ frame }) => frame === "deliver");
});

function beat() {
  return relay.envelope("witness", "agent.heartbeat");
}

async function connections(): Promise<number> {
  const response = await fetch(`${pod.url}/ready`);
  return ((await response.json()) as { connections: number }).connections;
}
