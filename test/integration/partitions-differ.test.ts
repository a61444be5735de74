import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { RedisLink } from "window/redis/redis-link.ts";
import { resetWindow } from "window/reset.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type Pod, TestRelay } from "../support/relay.ts";
import { until } from "../support/until.ts";

/** A gateway of two partitions and a connector of one would look for the same agent in different places. */

const relay = new TestRelay("alice", "bob-hmac");
const http = new HttpClient();
const noLeaks = watchLeaks();
let connector: Pod;
let gateway: Pod;
let reporting: Pod;
let link: RedisLink;
let bob: AgentSocket;

beforeAll(async () => {
  await relay.start();
  connector = await relay.startWsConnector({ RELAY_PARTITIONS: "1" });
  const two = { RELAY_PARTITIONS: "2" };
  [gateway, reporting] = await Promise.all([relay.startGateway(two), relay.startOpsReporting(two)]);
  link = new RedisLink({ url: relay.redis.url, name: "test", logger: relay.logger("test") });
  await link.start();
  bob = await relay.online(connector, "bob-hmac");
});
afterAll(async () => {
  await link.stop();
  await relay.stop();
  await noLeaks();
});

test("who has another number of partitions than the window is not ready, says so and writes nothing", async () => {
  const view = relay.view();
  for (const { url } of [gateway, reporting]) {
    const { status, body } = await http.get(`${url}/ready`);
    expect(status).toBe(503);
    expect(body).toMatchObject({
      ready: false,
      reason: "partitions",
      next_action: expect.stringContaining("RELAY_PARTITIONS"),
    });
  }
  expect(await send()).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect((await http.get(`${reporting.url}/api/ops/traffic-daily`)).status).toBe(503);
  expect(await view.counters()).toEqual({ websocket_accepted: 1 });
  expect(await view.windowId(1)).toBeNull();
  expect((await http.get(`${connector.url}/ready`)).status).toBe(200);
  expect(await bob.ask(heartbeat())).toMatchObject({ frame: "ack" });
});

test("a window of the other number is adopted by those who have it, and the rest are not ready any more", async () => {
  expect(await resetWindow(link, { partitions: 2, deployId: "local", force: false })).toMatchObject({
    outcome: "opened",
  });
  expect((await http.get(`${connector.url}/ready`)).body).toMatchObject({ ready: false, reason: "partitions" });
  expect(await bob.ask(heartbeat())).toMatchObject({ code: "unavailable" });
  for (const { url } of [gateway, reporting]) {
    await until("it is ready", async () => (await http.get(`${url}/ready`)).status === 200);
  }
  expect(await send()).toMatchObject({ status: 202 });
});

test("each service logged it once", () => {
  const told = relay.log.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "partitions");
  expect(told.map(({ service, link }) => [service, link]).sort()).toEqual([
    ["gateway", "gateway"],
    ["ops-reporting", "ops-reporting"],
    ["ws-connector", "ws-connector"],
  ]);
});

async function send() {
  const message = { from: "agent://alice", to: "agent://bob-hmac", message: "hi" };
  return await http.post(`${gateway.url}/v1/messages/send`, message, {
    "x-api-key": relay.keys.apiKeys.get("alice") as string,
  });
}

function heartbeat(): Frame {
  return relay.envelope("bob-hmac", "agent.heartbeat");
}
