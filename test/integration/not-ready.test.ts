import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { REDIS_DOWN_KINDS } from "relay-protocol/contract/responses.ts";
import { resetWindow } from "relay-window/window/reset.ts";
import type { AgentSocket } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { HttpClient, scrape } from "../support/http.ts";
import { type Pod, SERVICES } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { useRelay } from "../support/use-relay.ts";

/** Why a service is not ready, as an operator is told: by Redis that refuses it, by the window, or for want of one. */

const WRONG_PASSWORD = "not-the-password";
const relay = useRelay("alice", "bob-hmac");
const http = new HttpClient();

// Each waits for Redis when it starts.
test.concurrent.each(SERVICES)(
  "%s with a wrong password says so in /ready, in its metrics and once in its log",
  async (name) => {
    const { host } = await relay.proxy();
    const metricsPort = await freePort();
    const { url } = await relay.startService(name, {
      REDIS_URL: `redis://${name}:${WRONG_PASSWORD}@${host}`,
      METRICS_PORT: String(metricsPort),
    });
    // A start that a busy machine delays is `timeout` at first.
    await until("the link has been refused", async () => (await http.get(`${url}/ready`)).body.reason === "auth");
    const { status, body } = await http.get(`${url}/ready`);
    expect(status).toBe(503);
    expect(body).toMatchObject({ ready: false, reason: "auth", next_action: expect.stringContaining("REDIS_URL") });
    expect((await http.get(`${url}/health`)).status).toBe(200);

    const metrics = await scrape(`http://127.0.0.1:${metricsPort}/metrics`);
    expect(metrics.value("relay_redis_up", { link: name })).toBe(0);
    for (const kind of REDIS_DOWN_KINDS) {
      expect([kind, metrics.value("relay_redis_down", { link: name, kind })]).toEqual([
        kind,
        kind === "auth" ? 1 : undefined,
      ]);
    }
    const told = relay.log
      .map((line) => JSON.parse(line))
      .filter(({ service, link, level, kind }) => {
        return service === name && link === name && level === "warn" && kind !== "timeout";
      });
    expect(told).toMatchObject([{ kind: "auth" }]);
    expect(relay.log.join("\n")).not.toContain(WRONG_PASSWORD);
  },
);

test.concurrent("a pod whose user may not subscribe is not ready for that reason, and is ready as soon as it may", async () => {
  const { client } = relay.view();
  await client.call("ACL", "SETUSER", "default", "-ssubscribe");
  const pod = await relay.startWsConnector();
  const ready = async () => (await http.get(`${pod.url}/ready`)).body;
  await until("the reason is told", async () => (await ready()).reason === "noperm");
  expect(await ready()).toMatchObject({ ready: false, online_agents: 0 });
  await client.call("ACL", "SETUSER", "default", "+ssubscribe");
  await until("the pod is ready", async () => (await ready()).ready);
  expect(await ready()).not.toHaveProperty("reason");
  // It would open a window in the Redis that the next test empties.
  await pod.stop();
});

describe("a service that has another number of partitions than the window", () => {
  let connector: Pod;
  let two: readonly [Pod, Pod];
  let bob: AgentSocket;
  const ready = async ({ url }: Pod) => await http.get(`${url}/ready`);
  const heartbeat = () => relay.envelope("bob-hmac", "agent.heartbeat");
  const send = async () => {
    const message = { from: "agent://alice", to: "agent://bob-hmac", message: "hi" };
    return await http.post(`${two[0].url}/v1/messages/send`, message, relay.credentials("alice"));
  };
  beforeAll(async () => {
    connector = await relay.startWsConnector({ RELAY_PARTITIONS: "1" });
    const settings = { RELAY_PARTITIONS: "2" };
    two = await Promise.all([relay.startGateway(settings), relay.startOpsReporting(settings)]);
    bob = await relay.online(connector, "bob-hmac");
  });
  // A gateway would open a window in the Redis that the next test empties.
  afterAll(async () => {
    await Promise.all([connector, ...two].map((pod) => pod.stop()));
  });

  test("is not ready, says so and writes nothing", async () => {
    const view = relay.view();
    for (const pod of two) {
      expect(await ready(pod)).toMatchObject({
        status: 503,
        body: { ready: false, reason: "partitions", next_action: expect.stringContaining("RELAY_PARTITIONS") },
      });
    }
    expect(await send()).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect((await http.get(`${two[1].url}/api/ops/traffic-daily`)).status).toBe(503);
    expect(await view.counters()).toEqual({ websocket_accepted: 1 });
    expect(await view.windowId(1)).toBeNull();
    expect((await ready(connector)).status).toBe(200);
    expect(await bob.ask(heartbeat())).toMatchObject({ frame: "ack" });
  });

  test("adopts one of its number, which the others are not ready in any more; each logs that once", async () => {
    const reset = resetWindow(await relay.link(), { partitions: 2, deployId: "local", force: false });
    expect(await reset).toMatchObject({ outcome: "opened" });
    expect((await ready(connector)).body).toMatchObject({ ready: false, reason: "partitions" });
    expect(await bob.ask(heartbeat())).toMatchObject({ code: "unavailable" });
    for (const pod of two) await until("it is ready", async () => (await ready(pod)).status === 200);
    expect(await send()).toMatchObject({ status: 202 });
    const told = relay.log.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "partitions");
    expect(told.map(({ service, link }) => `${service} ${link}`).sort()).toEqual(
      SERVICES.map((name) => `${name} ${name}`).sort(),
    );
  });
});

test("reports without a process window say that there is none", async () => {
  const { client } = relay.view();
  await client.flushall();
  const reporting = await relay.startOpsReporting();
  const ready = async () => await http.get(`${reporting.url}/ready`);
  await until("the reason is told", async () => (await ready()).body.reason === "no_window");
  expect((await ready()).status).toBe(503);
  await relay.startGateway();
  await until("the reports are ready", async () => (await ready()).body.ready);
});
