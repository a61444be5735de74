import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { partitionKeys } from "relay-window/redis/keys.ts";
import { resetWindow } from "relay-window/window/reset.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../support/issuer.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { presentAgain } from "../support/window-view.ts";

/** Agents that send no heartbeat, register no more and renew nothing: whatever makes them present is their pods' doing. */

const PARTITIONS = 4;
const HOST = "relay.example";
const ISSUED = "acme.bob";
/** In every partition. */
const CROWD = ["ada", "berta", "carl", "dora", "emil", "frida", "gustav", "zoe"].map((name) => `${name}-hmac`);
const settings = { RELAY_PARTITIONS: String(PARTITIONS), RELAY_PUBLIC_HOSTS: HOST };
const relay = useRelay("alice", "bob-hmac", "rover-hmac", ...CROWD);
const acme = new TestIssuer("acme");
const http = new HttpClient();
const proxy = given(async () => {
  await relay.writeKeys({ ...relay.keys.file, issuers: [acme.record(["agent://acme.*"])] });
  return await relay.proxy();
});
const near = given(() => relay.startWsConnector(settings));
const far = given(() => relay.startWsConnector({ ...settings, REDIS_URL: proxy.url }));
const gateway = given(() => relay.startGateway(settings));
const view = given(() => relay.view(PARTITIONS));
const link = given(() => relay.link("window-reset"));
const reset = () => resetWindow(link, { partitions: PARTITIONS, deployId: "local", force: true });
let alice: AgentSocket;
let bob: AgentSocket;
let issued: AgentSocket;

beforeEach(async () => {
  for (const pod of [near, far]) await until("the pod is ready", () => isReady(pod));
  alice = await online(near, "alice");
  bob = await online(far, "bob-hmac");
  issued = await relay.connect(near);
});
afterEach(() => Promise.all([alice, bob, issued].map((socket) => socket.close())));

test.each<[string, () => Promise<unknown>]>([
  ["a reset", reset],
  ["Redis was emptied", () => view.empty()],
  ["Redis died and came back empty", () => relay.loseWindow()],
])(
  "after %s live agents are present and verifiable again without a heartbeat, seen when they were, and reach each other",
  async (_, lose) => {
    const agent = await acme.agent(`agent://${ISSUED}`);
    await registerIssued(agent);
    const [lost, seenAt] = [await view.windowId(), await view.lastSeen("bob-hmac")];
    await lose();
    await until("a window is opened", async () => ![lost, null].includes(await view.windowId()));
    await presentAgain(view, ["alice", "bob-hmac", ISSUED]);
    expect(await view.lastSeen("bob-hmac")).toBeLessThanOrEqual(seenAt as number);
    await expectFlow();
    expect(await lookUp()).toEqual({ credential: agent.credential, status: 200 });
    expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
  },
);

test("of an agent that renewed its credential and changed its key, each is found again as it was last", async () => {
  const first = await acme.agent(`agent://${ISSUED}`);
  const renewed = await acme.renewed(first, { nbf: 1 });
  const other = await acme.agent(`agent://${ISSUED}`);
  for (const agent of [first, renewed, other]) await registerIssued(agent);
  await view.empty();
  await until("it is present", () => view.isConnected(ISSUED));
  expect(await lookUp()).toEqual({ credential: other.credential, status: 200 });
  for (const { key, credential } of [renewed, other]) {
    expect(await lookUp(`?key_id=${key.keyId}`)).toEqual({ credential, status: 200 });
  }
});

test("agents are present again after publishes that a pod cut off from its channel did not hear", async () => {
  proxy.cut("ws-connector-channel");
  await until("nobody hears", async () => (await alice.ask(message())).target_delivery.status === "stale");
  expect(await view.isConnected("bob-hmac")).toBe(false);
  proxy.heal();
  await expectPresent();
  await expectFlow();
});

test("an agent that moved while its former pod did not hear of it stays where it moved to, and that pod's connection is told", async () => {
  const before = await online(far, "rover-hmac");
  proxy.cut();
  await until("the former pod hears nothing", async () => !(await isReady(far)));
  const after = await online(near, "rover-hmac");
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
  await reset();
  const request = relay.envelope("alice", "session.request", { to: "agent://bob-hmac", payload: { purpose: "talk" } });
  await until("the request is accepted", async () => (await alice.ask(request)).frame === "ack");
  proxy.heal();
  await expectPresent();
  expect(await bob.ask(relay.envelope("bob-hmac", "agent.heartbeat"))).toMatchObject({ frame: "ack" });
  expect(await bob.next("the notice", ({ notice }) => notice === "pending_sessions")).toMatchObject({ total: 1 });
});

test("agents of a partition that was lost are present again though nobody sends, and those of the others stay", async () => {
  const joined = CROWD.map(async (name, n) => [name, await online(n % 2 === 0 ? near : far, name)] as const);
  const agents = new Map(await Promise.all(joined));
  expect(new Set(CROWD.map((name) => view.partition(name))).size).toBe(PARTITIONS);
  const lost = view.partition(CROWD[0] as string);
  const held = await Promise.all(CROWD.map((name) => view.route(name)));
  const last = await view.windowId();
  const tag = partitionKeys.window(lost).split(":")[1];
  await view.client.del(...(await view.names(`relay:${tag}:*`)));

  await until("a window is opened", async () => (await view.windowId(lost)) !== null);
  await presentAgain(view, CROWD);
  expect(await Promise.all(CROWD.map((name) => view.route(name)))).toEqual(held);
  const windows = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => view.windowId(p)));
  expect(new Set(windows).size).toBe(1);
  expect(windows).not.toContain(last);
  for (const [n, from] of CROWD.entries()) {
    const to = CROWD[(n + 1) % CROWD.length] as string;
    const envelope = relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { n } });
    await agents.get(from)?.ask(envelope);
    await agents.get(to)?.delivered(envelope.id);
  }
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

async function registerIssued(agent: CredentialAgent): Promise<void> {
  await until("it is registered", async () => (await issued.ask(registerWith(agent, HOST))).accepted === true);
}

/** The gateway's own connection may come back after the pod's: it says `unavailable` until then, and `unknown` never. */
async function lookUp(query = ""): Promise<object> {
  const ask = () => http.get(`${gateway.url}/v1/agents/${ISSUED}/credential${query}`);
  let answer = await ask();
  await until("the gateway reaches Redis", async () => {
    if (answer.status === 503) answer = await ask();
    return answer.status !== 503;
  });
  return { status: answer.status, credential: answer.body.credential };
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
