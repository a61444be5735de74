import { beforeEach, expect, test } from "@jest/globals";
import type { Envelope } from "protocol/contract/envelope.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";
import { waitForRedis } from "../support/wait-for-redis.ts";

const HASTY = Array.from({ length: 20 }, (_, n) => `hasty-${n}`);
const relay = useRelay("witness", "held-hmac", "approver-hmac", "late-hmac", "later-hmac", "open-hmac", ...HASTY);
giveUpCalls();
const proxy = given(() => relay.proxy());
const pod = given(() => relay.startWsConnector({ REDIS_URL: proxy.url }));
const view = given(() => relay.view());
const witness = given(() => relay.online(pod, "witness"));
// A pod that had no answer for 450 ms gives its link to Redis up. It refuses all registers until it has another link.
async function podIsReady(): Promise<void> {
  proxy.letGo("ws-connector");
  await until("the pod is ready", async () => (await fetch(`${pod.url}/ready`)).ok);
}
beforeEach(podIsReady);

test("a register whose signature was checked after its connection closed leaves no route", async () => {
  for (const [n, name] of HASTY.entries()) {
    const socket = await relay.connect(pod);
    socket.send(relay.envelope(name, "agent.register"));
    if (n % 2 === 0) socket.socket.terminate();
    else socket.socket.close();
  }
  await until("the pod saw them go", async () => (await connections()) === 1);
  // What the witness sends is checked and accepted after all that came before.
  for (let n = 0; n < 5; n += 1) await witness.ask(toNobody());
  for (const name of HASTY) expect(await view.isConnected(name)).toBe(false);
});

test("a register that Redis answered after its connection closed leaves no route", async () => {
  const socket = await readConnection();
  waitForRedis();
  const isTaken = () => view.isConnected("held-hmac");
  await proxy.askUnheard("ws-connector", socket, relay.envelope("held-hmac", "agent.register"), isTaken);
  await socket.close();
  proxy.letGo("ws-connector");
  await until("the route is gone", async () => !(await view.isConnected("held-hmac")));
});

test("a route whose release Redis refused is released when Redis takes it, without another close or reconnect", async () => {
  const socket = await relay.online(pod, "held-hmac");
  const { client } = view;
  const route = (await view.keysOf("held-hmac")).route;
  await client.multi().rename(route, `${route}:aside`).set(route, "no hash").exec();
  await socket.close();
  await until("Redis refused", () => relay.log.some((line) => line.includes("WRONGTYPE") && line.includes("release")));
  await client.rename(`${route}:aside`, route);
  await until("the route is gone", async () => !(await view.isConnected("held-hmac")));
});

test("a session decision whose place is reserved reaches its requester, though its connection closed before the pod knew of it", async () => {
  const approver = await relay.online(pod, "approver-hmac");
  const request = { to: "agent://approver-hmac", payload: { purpose: "talk" } };
  const { session_id } = await witness.ask(relay.envelope("witness", "session.request", request));
  const approval = relay.envelope("approver-hmac", "session.approve", {
    to: "agent://witness",
    payload: { session_id },
  });
  waitForRedis();
  await proxy.askUnheard("ws-connector", approver, approval, () => proxy.hasSaid("ws-connector", "reserved"));
  await approver.close();
  proxy.letGo("ws-connector");
  expect(await witness.delivered(approval.id)).toMatchObject({ session_id });
});

test("a register that Redis took, whose connection closed before its time was over without an answer, leaves no route", async () => {
  const socket = await readConnection();
  const isTaken = () => view.isConnected("late-hmac");
  do {
    await podIsReady();
    proxy.swallowAfter("agent://late-hmac");
    const before = socket.frames.length;
    socket.send(relay.envelope("late-hmac", "agent.register"));
    await until("Redis took it, or not in time", async () => (await isTaken()) || socket.frames.length > before);
  } while (!(await isTaken()));
  await socket.close();
  await until("the route is gone", async () => !(await view.isConnected("late-hmac")));
});

test("a register refused as unavailable, whose connection then closed, leaves no route either", async () => {
  const socket = await relay.connect(pod);
  await takenAndRefused(socket, relay.envelope("later-hmac", "agent.register"));
  await socket.close();
  await until("the route is gone", async () => !(await view.isConnected("later-hmac")));
});

test("a register refused as unavailable and sent again is acknowledged on the same connection, which then owns", async () => {
  const socket = await relay.connect(pod);
  const register = relay.envelope("open-hmac", "agent.register");
  const request = { to: "agent://open-hmac", payload: { purpose: "talk" } };
  await witness.ask(relay.envelope("witness", "session.request", request));
  await takenAndRefused(socket, register);
  await until("it is acknowledged", async () => (await socket.ask(register)).frame === "ack");
  const isFirstAck = ({ frame }: Frame) => frame === "ack";
  expect(socket.frames.find(isFirstAck)).toMatchObject({ duplicate: true, presence: { status: "online" } });
  await socket.next("its pending session", ({ notice, total }) => notice === "pending_sessions" && total === 1);
  expect(await socket.ask(register)).toMatchObject({ duplicate: true });
  expect(socket.notices("pending_sessions")).toHaveLength(1);
  await witness.ask(relay.envelope("witness", "message.send", { to: "agent://open-hmac" }));
  await socket.next("the message", ({ frame }) => frame === "deliver");
});

/** Redis takes the register, and its pod has no answer in time. A machine that is busy for half a second asks Redis too late. */
async function takenAndRefused(socket: AgentSocket, register: Envelope): Promise<void> {
  do {
    await podIsReady();
    proxy.swallowAfter(register.from);
    expect(await socket.ask(register)).toMatchObject({ code: "unavailable" });
  } while (!(await view.isConnected(register.from.replace("agent://", ""))));
}

/** A connection that its pod reads while a register is in flight: it reads no other one before the first is answered. */
async function readConnection(): Promise<AgentSocket> {
  return await relay.online(pod, "approver-hmac");
}

function toNobody() {
  return relay.envelope("witness", "message.send", { to: "agent://never-seen" });
}

async function connections(): Promise<number> {
  const response = await fetch(`${pod.url}/ready`);
  return ((await response.json()) as { connections: number }).connections;
}
