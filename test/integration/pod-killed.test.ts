import { beforeEach, expect, test } from "@jest/globals";
import type { AgentSocket } from "../support/agent.ts";
import type { PodProcess } from "../support/pod-process.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const relay = useRelay("sender-hmac", "target-hmac", "second");
let doomed: PodProcess;
const survivor = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const sender = given(() => relay.online(survivor, "sender-hmac"));
beforeEach(async () => {
  doomed = await relay.startWsConnectorProcess();
});

test("a pod that was killed is discovered at the next delivery, whose ack says stale", async () => {
  const target = await relay.online(doomed, "target-hmac");
  expect(await sender.ask(message())).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await doomed.end("SIGKILL");
  expect(await target.untilClosed()).toBe(1006);
  expect(await view.isConnected("target-hmac")).toBe(true);

  expect(await sender.ask(message())).toMatchObject({
    accepted: true,
    target_delivery: { status: "stale", can_deliver_realtime: false },
  });
  expect(await view.isConnected("target-hmac")).toBe(false);
});

test("an agent of a killed pod comes back on another one with a register", async () => {
  await relay.online(doomed, "target-hmac");
  await doomed.end("SIGKILL");
  await expectOnline(await relay.online(survivor, "target-hmac"));
});

test("an agent of a killed pod comes back on another one with a heartbeat alone", async () => {
  await relay.online(doomed, "target-hmac");
  await doomed.end("SIGKILL");
  const target = await relay.connect(survivor);
  const heartbeat = () => target.ask(relay.envelope("target-hmac", "agent.heartbeat"));
  let answer = await heartbeat();
  // Over several partitions a pod is gone once its lease is over.
  await until("the pod is gone", async () => {
    if (relay.partitions === 1 || answer.code !== "unavailable") return true;
    answer = await heartbeat();
    return false;
  });
  expect(answer).toMatchObject({ accepted: true, presence: { status: "online" } });
  await expectOnline(target);
});

test("an agent comes back on the pod that took the killed one's place", async () => {
  await relay.online(doomed, "target-hmac");
  await doomed.end("SIGKILL");
  const successor = await relay.startWsConnectorProcess();
  await expectOnline(await relay.online(successor, "target-hmac"));
});

test("a heartbeat does not take an agent from a pod that lives", async () => {
  const target = await relay.online(doomed, "target-hmac");
  const thief = await relay.connect(survivor);
  expect(await thief.ask(relay.envelope("target-hmac", "agent.heartbeat"))).toMatchObject({ code: "not_registered" });
  await expectOnline(target);
});

async function expectOnline(target: AgentSocket): Promise<void> {
  const sent = message();
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { status: "online", can_deliver_realtime: true } });
  await target.delivered(sent.id);
}

function message() {
  return relay.envelope("sender-hmac", "message.send", { to: "agent://target-hmac", payload: { message: "hi" } });
}
