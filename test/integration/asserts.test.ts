import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { resetWindow } from "window/reset.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { presentAgain } from "../support/present-again.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Agents that send no heartbeat: whatever makes them present is their pods' doing. */
const relay = useRelay("alice", "bob-hmac", "rover-hmac");
const proxy = given(() => relay.proxy());
const near = given(() => relay.startWsConnector());
const far = given(() => relay.startWsConnector({ REDIS_URL: proxy.url }));
const view = given(() => relay.view());
const link = given(() => relay.link("window-reset"));
let alice: AgentSocket;
let bob: AgentSocket;

beforeEach(async () => {
  for (const pod of [near, far]) await until("the pod is ready", () => isReady(pod));
  alice = await online(near, "alice");
  bob = await online(far, "bob-hmac");
});
afterEach(() => Promise.all([alice.close(), bob.close()]));

test("after a reset live agents are present again without a heartbeat, seen when they were, and reach each other", async () => {
  const seenAt = await view.lastSeen("bob-hmac");
  await resetWindow(link, { partitions: relay.partitions, deployId: "local", force: true });
  await presentAgain(view, ["alice", "bob-hmac"]);
  expect(await view.lastSeen("bob-hmac")).toBeLessThanOrEqual(seenAt as number);
  await expectFlow();
});

test("after a Redis that died came back empty they are, too", async () => {
  const lostWindow = await view.windowId();
  await relay.loseWindow();
  await until("a window is opened", async () => ![lostWindow, null].includes(await view.windowId()));
  await presentAgain(view, ["alice", "bob-hmac"]);
  await expectFlow();
  expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
});

test("and after publishes that a pod cut off from its channel did not hear", async () => {
  proxy.cut("ws-connector-channel");
  await until("nobody hears", async () => (await alice.ask(message())).target_delivery.status === "stale");
  expect(await view.isConnected("bob-hmac")).toBe(false);
  proxy.heal();
  await expectPresent();
  await expectFlow();
});

test("an agent that moved while its former pod did not hear of it stays where it moved to, and that pod's connection is told", async () => {
  const before = await relay.online(far, "rover-hmac");
  proxy.cut();
  await until("the former pod hears nothing", async () => !(await isReady(far)));
  const after = await relay.online(near, "rover-hmac");
  const moved = await view.route("rover-hmac");
  await relay.loseWindow();
  await until("rover is present where it is", async () => (await view.route("rover-hmac")) !== null);
  proxy.heal();
  expect(await before.untilClosed()).toBe(4409);
  expect(before.notices("superseded")).toMatchObject([{ agent_id: "agent://rover-hmac", epoch: moved?.epoch }]);
  expect(await view.route("rover-hmac")).toEqual(moved);
  const sent = relay.envelope("alice", "message.send", { to: "agent://rover-hmac", payload: { message: "hi" } });
  expect(await alice.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await after.delivered(sent.id);
  await after.close();
});

test("what was asked of an agent between the reset and its return is told with its next heartbeat", async () => {
  proxy.cut();
  await until("the agent's pod hears nothing", async () => !(await isReady(far)));
  await resetWindow(link, { partitions: relay.partitions, deployId: "local", force: true });
  const request = relay.envelope("alice", "session.request", { to: "agent://bob-hmac", payload: { purpose: "talk" } });
  await until("the request is accepted", async () => (await alice.ask(request)).frame === "ack");
  proxy.heal();
  await expectPresent();
  expect(await bob.ask(relay.envelope("bob-hmac", "agent.heartbeat"))).toMatchObject({ frame: "ack" });
  expect(await bob.next("the notice", ({ notice }) => notice === "pending_sessions")).toMatchObject({ total: 1 });
});

async function isReady(pod: Pod): Promise<boolean> {
  return (await fetch(`${pod.url}/ready`)).ok;
}

async function expectPresent(): Promise<void> {
  for (const name of ["alice", "bob-hmac"]) {
    await until(`${name} is present`, () => view.isConnected(name));
  }
}

async function expectFlow(): Promise<void> {
  const sent = message();
  expect(await alice.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await bob.delivered(sent.id);
}

function message(): Frame {
  return relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { message: "hi" } });
}

/** Partitions that the test before reset may be unavailable for a moment yet: as they answer, who asks again later is taken. */
async function online(pod: Pod, name: string): Promise<AgentSocket> {
  let socket: AgentSocket | undefined;
  await until(`${name} is online`, async () => {
    socket = await relay.online(pod, name).catch(() => undefined);
    return socket !== undefined;
  });
  return socket as AgentSocket;
}
