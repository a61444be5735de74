import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type AgentSocket, deliveredTo, type Frame, Traffic } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const TARGETS = Array.from({ length: 10 }, (_, n) => `target-${n}-hmac`);
const relay = useRelay("sender-hmac", "newcomer-hmac", "absent-hmac", ...TARGETS);
const view = given(() => relay.view());
const near = given(() => relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "0", RELAY_BYTES_PER_SECOND: "0" }));
/** Those of the near pod, which are not to be cut. */
const nearChannels = given(() => channels());
const far = given(() => relay.startWsConnector());
let sender: AgentSocket;
let targets: AgentSocket[];

beforeEach(async () => {
  sender = await relay.online(near, "sender-hmac");
  targets = await Promise.all(TARGETS.map((name) => relay.online(far, name)));
});
afterEach(async () => {
  await reconnect();
  await Promise.all([sender, ...targets].map((socket) => socket.close()));
});

test("under traffic no ack promises what no one was subscribed to receive, and nothing comes twice", async () => {
  const traffic = new Traffic(sender, 16, (n) => message(TARGETS[n % TARGETS.length] as string));
  const cutOffMidway = new Set<string>();
  for (let cut = 0; cut < 3; cut += 1) {
    const before = traffic.answers.size;
    await until("messages flow", () => traffic.answers.size > before + 200);
    for (const id of await cutOff(traffic)) cutOffMidway.add(id);
    await reconnect();
    await Promise.all(targets.map((target, n) => target.ask(heartbeat(TARGETS[n] as string))));
  }
  await traffic.stop();
  const last = await Promise.all(TARGETS.map((name) => sendPromised(name)));
  await Promise.all(targets.map((target, n) => target.delivered(last[n] as string)));

  const delivered = deliveredTo(targets);
  expect(new Set(delivered).size).toBe(delivered.length);
  expect(traffic.promised.filter((id) => !delivered.includes(id) && !cutOffMidway.has(id))).toEqual([]);
  expect(traffic.promised.length).toBeGreaterThan(0);
  expect(traffic.promised.length).toBeLessThan(traffic.sent.size);
});

test("a register during the gap is refused as unavailable; sent again it is told of its pending sessions", async () => {
  const request = { to: "agent://newcomer-hmac", payload: { purpose: "talk" } };
  await sender.ask(relay.envelope("sender-hmac", "session.request", request));
  const newcomer = await relay.connect(far);
  const register = relay.envelope("newcomer-hmac", "agent.register");
  await cutOff();
  expect(await newcomer.ask(register)).toMatchObject({ code: "unavailable" });
  expect(await sender.ask(message("newcomer-hmac"))).toMatchObject({
    target_delivery: { can_deliver_realtime: false },
  });
  await reconnect();
  expect(await newcomer.ask(register)).toMatchObject({ frame: "ack", presence: { status: "online" } });
  expect(newcomer.notices("pending_sessions")).toMatchObject([{ total: 1 }]);
  const sent = message("newcomer-hmac");
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await newcomer.delivered(sent.id);
});

/**
 * Cuts the far pod off from its channel, and keeps it off.
 * @returns ids of what was under way meanwhile: it may have been published, and lost with the connection killed.
 */
async function cutOff(traffic?: Traffic): Promise<string[]> {
  const farChannel = (await channels()).find((id) => !nearChannels.includes(id)) as string;
  const answered = new Set(traffic?.answers.keys());
  const cut = view.client.multi().call("ACL", "SETUSER", "default", "-ssubscribe");
  await cut.call("CLIENT", "KILL", "ID", farChannel).exec();
  const underWay = [...(traffic?.sent.keys() ?? [])].filter((id) => !answered.has(id));
  await until("the pod knows", async () => !(await fetch(`${far.url}/ready`)).ok);
  return underWay;
}

async function reconnect(): Promise<void> {
  await view.client.call("ACL", "SETUSER", "default", "+ssubscribe");
  await until("the pod is ready", async () => (await fetch(`${far.url}/ready`)).ok);
}

/** Ids of the connections that the pods' channels come in on. */
async function channels(): Promise<string[]> {
  const list = String(await view.client.call("CLIENT", "LIST"));
  const lines = list.split("\n").filter((line) => line.includes(" name=ws-connector-channel "));
  return lines.map((line) => /^id=(\d+)/.exec(line)?.[1] as string);
}

async function sendPromised(name: string): Promise<string> {
  const sent = message(name);
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  return sent.id;
}

function message(to: string): Frame {
  return relay.envelope("sender-hmac", "message.send", { to: `agent://${to}`, payload: { message: "hi" } });
}

function heartbeat(name: string): Frame {
  return relay.envelope(name, "agent.heartbeat");
}
