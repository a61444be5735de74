import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { AgentSocket } from "../support/agent.ts";
import { watchLeaks } from "../support/leaks.ts";
import type { PodProcess } from "../support/pod-process.ts";
import { type Pod, TestRelay } from "../support/relay.ts";
import { deliveredTo, Traffic } from "../support/traffic.ts";
import { until } from "../support/until.ts";
import type { WindowView } from "../support/window-view.ts";

const TARGETS = Array.from({ length: 50 }, (_, n) => `target-${n}-hmac`);
const IN_FLIGHT = 32;
const relay = new TestRelay("sender-hmac", ...TARGETS);
const noLeaks = watchLeaks();
let staying: Pod;
let leaving: PodProcess;
let view: WindowView;
let sender: AgentSocket;

beforeAll(async () => {
  await relay.start();
  staying = await relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "0" });
  leaving = await relay.startWsConnectorProcess();
  view = relay.view();
  sender = await relay.online(staying, "sender-hmac");
});
afterAll(async () => {
  await relay.stop();
  await noLeaks();
});

test("a connection is closed only after it got what its pod's channel still held for it", async () => {
  const proxy = await relay.proxy();
  const pod = await relay.startWsConnector({ REDIS_URL: proxy.url });
  const [name] = TARGETS as [string];
  const target = await relay.online(pod, name);
  proxy.holdReplies("ws-connector-channel");
  const sent = relay.envelope("sender-hmac", "message.send", { to: `agent://${name}` });
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  const stopped = pod.stop();
  await until("the agent is released", async () => !(await view.isConnected(name)));
  proxy.letGo("ws-connector-channel");

  await target.delivered(sent.id);
  expect(await target.untilClosed()).toBe(1001);
  await stopped;
});

test("a pod that is told to end says so, delivers what it promised, releases its agents, and ends with 0", async () => {
  const targets = await Promise.all(TARGETS.map((name) => relay.online(leaving, name)));
  const traffic = new Traffic(sender, IN_FLIGHT, (n) =>
    relay.envelope("sender-hmac", "message.send", { to: `agent://${TARGETS[n % TARGETS.length]}`, payload: { n } }),
  );
  await until("messages flow", () => targets.every(({ deliveries }) => deliveries.length > 0));
  expect(await leaving.end("SIGTERM")).toBe(0);
  for (const name of TARGETS) expect(await view.isConnected(name)).toBe(false);
  await traffic.stop();

  expect(await Promise.all(targets.map((target) => target.untilClosed()))).toEqual(targets.map(() => 1001));
  for (const target of targets) {
    const [notice, ...more] = target.notices("draining");
    expect(notice.reconnect_after_ms).toBeGreaterThanOrEqual(100);
    expect(more).toEqual([]);
  }
  const delivered = deliveredTo(targets);
  expect(new Set(delivered).size).toBe(delivered.length);
  expect(traffic.promised.filter((id) => !delivered.includes(id))).toEqual([]);
  expect(traffic.promised.length).toBeLessThan(traffic.sent.size);
});
