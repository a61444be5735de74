import { afterEach, expect, jest, test } from "@jest/globals";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { createWsConnector } from "../../services/ws-connector/src/service.ts";
import { readWsConnectorSettings } from "../../services/ws-connector/src/settings.ts";
import { deliveredTo, Traffic, tryUpgrade } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { fakeTimers } from "../support/time.ts";
import { until } from "../support/until.ts";
import { waitForRedis } from "../support/use.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** How pods end, and what services know of themselves when they start. */

const TARGETS = Array.from({ length: 50 }, (_, n) => `target-${n}-hmac`);
const IN_FLIGHT = 32;
/** When a pod that has as long to drain closes the first connection. */
const FIRST_CLOSE_MS = 2000;
const UNLIMITED = { RELAY_ENVELOPES_PER_SECOND: "0", RELAY_BYTES_PER_SECOND: "0" };
const relay = useRelay("sender-hmac", ...TARGETS);
const staying = given(() => relay.startWsConnector(UNLIMITED));
const leaving = given(() => relay.startWsConnectorProcess());
const view = given(() => relay.view());
const sender = given(() => relay.online(staying, "sender-hmac"));
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test("a connection is closed only after it got what its pod's channel still held for it", async () => {
  const proxy = await relay.proxy();
  const pod = await relay.startWsConnector({ REDIS_URL: proxy.url });
  const [name] = TARGETS as [string];
  const target = await relay.online(pod, name);
  waitForRedis();
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

test("a pod that drains takes no connection, and is not ready, and healthy; it delivers until it closes its first connection", async () => {
  const pod = await relay.startWsConnector({ RELAY_DRAIN_MS: `${FIRST_CLOSE_MS}` });
  const [name] = TARGETS as [string];
  const target = await relay.online(pod, name);
  fakeTimers();
  const stopped = pod.stop();
  await target.next("the notice", ({ notice }) => notice === "draining");

  const sent = relay.envelope("sender-hmac", "message.send", { to: `agent://${name}` });
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { status: "online" } });
  await target.delivered(sent.id);
  const [ready, health] = await Promise.all([fetch(`${pod.url}/ready`), fetch(`${pod.url}/health`)]);
  expect([ready.status, health.status]).toEqual([503, 200]);
  const { status, headers } = await tryUpgrade(pod, "/ws");
  expect([status, headers["retry-after"]]).toEqual([503, "5"]);

  expect(target.closed).toBeUndefined();
  jest.advanceTimersByTime(FIRST_CLOSE_MS);
  jest.useRealTimers();
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

test("a pod that is stopped while it starts leaves no timer and no socket behind", async () => {
  const settings = readWsConnectorSettings(relay.environmentOf("ws-connector"));
  const pod = createWsConnector(settings, { logger: relay.logger("ws-connector") });
  const setInterval = jest.spyOn(globalThis, "setInterval");
  const started = pod.start();
  await pod.stop();
  await started;
  expect(setInterval).not.toHaveBeenCalled();
});

test.each([
  ["gateway", SURFACES.relayManifest.path],
  ["ops-reporting", SURFACES.activationPlan.path],
] as const)("%s alone, with PORT=0, publishes the port that it listens on", async (service, path) => {
  const pod = await relay.startProcess(service, { PORT: "0" });
  const { status, body } = await new HttpClient().get(pod.url + path);
  expect(status).toBe(200);
  expect(JSON.stringify(body)).toContain(`http://127.0.0.1:${pod.port}`);
  expect(JSON.stringify(body)).not.toContain("127.0.0.1:0");
});

test("ws-connector alone, with PORT=0, names the port that it listens on in its advice", async () => {
  const pod = await relay.startProcess("ws-connector", { PORT: "0" });
  const agent = await relay.online(pod, "sender-hmac");
  const ack = await agent.ask(relay.envelope("sender-hmac", "message.send", { to: "agent://nobody", payload: {} }));
  expect(JSON.stringify(ack)).toContain(`http://127.0.0.1:${pod.port}/`);
});
