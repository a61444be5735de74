import { beforeAll, expect, test } from "@jest/globals";
import type { AgentSocket } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** One pod is killed before the tests: each is about another of its agents. */

const AGENTS = ["sent-to-hmac", "registers-hmac", "beats-hmac", "succeeds-hmac"] as const;
const relay = useRelay("sender-hmac", "living-hmac", ...AGENTS);
const doomed = given(() => relay.startWsConnectorProcess());
const survivor = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const sender = given(() => relay.online(survivor, "sender-hmac"));
beforeAll(async () => {
  for (const name of AGENTS) await expectOnline(await relay.online(doomed, name), name);
  await view.kill(doomed);
});

test("a pod that was killed is discovered at the next delivery, whose ack says stale", async () => {
  const [name] = AGENTS;
  expect(await view.isConnected(name)).toBe(true);
  expect(await sender.ask(messageTo(name))).toMatchObject({
    accepted: true,
    target_delivery: { status: "stale", can_deliver_realtime: false },
  });
  expect(await view.isConnected(name)).toBe(false);
});

test("an agent of a killed pod comes back on another one with a register", async () => {
  await expectOnline(await relay.online(survivor, "registers-hmac"), "registers-hmac");
});

test("an agent of a killed pod comes back on another one with a heartbeat alone", async () => {
  const target = await relay.connect(survivor);
  const heartbeat = () => target.ask(relay.envelope("beats-hmac", "agent.heartbeat"));
  let answer = await heartbeat();
  // Over several partitions a pod is gone once its lease is over.
  await until("the pod is gone", async () => {
    if (relay.partitions === 1 || answer.code !== "unavailable") return true;
    answer = await heartbeat();
    return false;
  });
  expect(answer).toMatchObject({ accepted: true, presence: { status: "online" } });
  await expectOnline(target, "beats-hmac");
});

test("an agent comes back on the pod that took the killed one's place", async () => {
  const successor = await relay.startWsConnector();
  await expectOnline(await relay.online(successor, "succeeds-hmac"), "succeeds-hmac");
});

test("a heartbeat does not take an agent from a pod that lives", async () => {
  const target = await relay.online(await relay.startWsConnector(), "living-hmac");
  const thief = await relay.connect(survivor);
  expect(await thief.ask(relay.envelope("living-hmac", "agent.heartbeat"))).toMatchObject({ code: "not_registered" });
  await expectOnline(target, "living-hmac");
});

async function expectOnline(target: AgentSocket, name: string): Promise<void> {
  const sent = messageTo(name);
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { status: "online", can_deliver_realtime: true } });
  await target.delivered(sent.id);
}

function messageTo(name: string) {
  return relay.envelope("sender-hmac", "message.send", { to: `agent://${name}`, payload: { message: "hi" } });
}
