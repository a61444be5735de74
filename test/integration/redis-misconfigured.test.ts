import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { REDIS_DOWN_KINDS } from "protocol/contract/responses.ts";
import { freePort } from "../support/free-port.ts";
import { HttpClient } from "../support/http.ts";
import { watchLeaks } from "../support/leaks.ts";
import { TestRelay } from "../support/relay.ts";
import { scrape } from "../support/scrape.ts";
import { SERVICES } from "../support/services.ts";
import { until } from "../support/until.ts";

const WRONG_PASSWORD = "not-the-password";
const relay = new TestRelay("alice");
const http = new HttpClient();
const noLeaks = watchLeaks();

beforeAll(() => relay.start());
afterAll(async () => {
  await relay.stop();
  await noLeaks();
});

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
