import { beforeAll, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { GuardedRelay } from "../support/guarded-redis.ts";
import { HttpClient, scrape } from "../support/http.ts";
import { emptyAgain, fillTo } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

/** Who is refused what while Redis fills up, in which order, and how it comes back: one story, told in the order of the tests. */
const relay = use(new GuardedRelay("alice", "bob-hmac", "carol"));
const http = new HttpClient();
const view = given(() => relay.view());
const metricsPorts = new Map<string, number>();
const withMetrics = async (service: string) => {
  metricsPorts.set(service, await freePort());
  return { METRICS_PORT: String(metricsPorts.get(service)) };
};
const pod = given(async () => await relay.startWsConnector(await withMetrics("ws-connector")));
const gateway = given(async () => await relay.startGateway(await withMetrics("gateway")));
const reporting = given(() => relay.startOpsReporting());
const alice = given(() => relay.online(pod, "alice"));
const bob = given(() => relay.online(pod, "bob-hmac"));
const carol = given(() => relay.connect(pod));

/** Envelopes that were refused, to be sent again as they are. */
const refused: { readonly socket: AgentSocket; readonly envelope: Frame }[] = [];
const KNOWN_KEY = { "idempotency-key": "known" };

const message = () => relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { message: "hi" } });
const request = () =>
  relay.envelope("alice", "session.request", { to: "agent://bob-hmac", payload: { purpose: "talk" } });
const heartbeat = () => relay.envelope("bob-hmac", "agent.heartbeat");
const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  http.post(gateway.url + path, { from: "agent://alice", to: "agent://bob-hmac", ...body }, headers);
const send = (headers: Record<string, string> = {}) =>
  post("/v1/messages/send", { message: "hi" }, { ...relay.credentials("alice"), ...headers });
const ready = async (url: string) => await http.get(`${url}/ready`);

async function refuse(socket: AgentSocket, envelope: Frame, error: object): Promise<void> {
  expect(await socket.ask(envelope)).toMatchObject({ frame: "error", retry: "later", ...error });
  refused.push({ socket, envelope });
}

beforeAll(async () => {
  expect((await send(KNOWN_KEY)).status).toBe(202);
});

test("three quarters full, every service says so and stays ready, and once in its log", async () => {
  await fillTo(view.client, 0.8);
  for (const { url } of [pod, gateway, reporting]) {
    await until("it is degraded", async () => (await ready(url)).body.degraded !== undefined);
    expect(await ready(url)).toMatchObject({
      status: 200,
      body: { ready: true, degraded: ["redis_memory"], next_action: expect.stringContaining("maxmemory") },
    });
  }
  const metrics = await scrape(`http://127.0.0.1:${metricsPorts.get("gateway")}/metrics`);
  expect(metrics.value("relay_redis_memory_ratio")).toBeCloseTo(0.8, 1);
  expect(relay.log.filter((line) => line.includes("short of memory"))).toHaveLength(3);
});

test("then sessions, Idempotency-Keys and new agents are refused, to be sent again later", async () => {
  const overCapacity = { code: "over_capacity", retry_after_ms: 10_000 };
  await refuse(alice, request(), overCapacity);
  await refuse(carol, relay.envelope("carol", "agent.register"), overCapacity);
  const answers = [
    await send({ "idempotency-key": "new" }),
    await post("/v1/sessions/request", { purpose: "talk" }, relay.credentials("alice")),
  ];
  for (const { status, body, headers } of answers) {
    expect({ status, body }).toMatchObject({ status: 503, body: overCapacity });
    expect(headers.get("retry-after")).toBe("10");
  }
  for (const [service, times] of [
    ["ws-connector", 2],
    ["gateway", 2],
  ] as const) {
    const metrics = await scrape(`http://127.0.0.1:${metricsPorts.get(service)}/metrics`);
    expect([service, metrics.value("relay_limits_total", { limit: "redis_memory" })]).toEqual([service, times]);
  }
});

test("while those who are present go on, and known Idempotency-Keys are answered", async () => {
  const first = message();
  expect(await alice.ask(first)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await bob.delivered(first.id);
  expect(await bob.ask(heartbeat())).toMatchObject({ presence: { status: "online" } });
  expect(await bob.ask(relay.envelope("bob-hmac", "agent.register"))).toMatchObject({ accepted: true });
  expect((await send()).body.target_delivery).toMatchObject({ can_deliver_realtime: true });
  expect((await send(KNOWN_KEY)).headers.get("idempotent-replayed")).toBe("true");
});

test("only when Redis itself refuses writes are messages refused, as unavailable, and reports go on", async () => {
  await fillTo(view.client, 1.1);
  await refuse(alice, message(), { code: "unavailable" });
  await refuse(bob, heartbeat(), { code: "unavailable" });
  expect(await send()).toMatchObject({ status: 503, body: { code: "unavailable" } });
  for (const { url } of [pod, gateway]) {
    expect(await ready(url)).toMatchObject({ status: 503, body: { reason: "full", degraded: ["redis_memory"] } });
  }
  expect((await ready(reporting.url)).status).toBe(200);
  expect((await http.get(`${reporting.url}/api/ops/traffic-daily`)).status).toBe(200);
});

test("all of it comes back by itself: what was refused is accepted as it was sent, and none of it is a repeat", async () => {
  await emptyAgain(view.client);
  const last = refused.slice(2);
  for (const { socket, envelope } of last) expect(await socket.ask(envelope)).not.toHaveProperty("duplicate");
  for (const { url } of [pod, gateway, reporting]) {
    await until("it is as before", async () => (await ready(url)).body.degraded === undefined);
    expect((await ready(url)).status).toBe(200);
  }
  for (const { socket, envelope } of refused.slice(0, 2)) {
    expect(await socket.ask(envelope)).toMatchObject({ frame: "ack" });
    expect(await socket.ask(envelope)).toMatchObject({ duplicate: true });
  }
  expect((await send({ "idempotency-key": "new" })).status).toBe(202);
  expect([alice, bob, carol].map(({ closed }) => closed)).toEqual([undefined, undefined, undefined]);
  expect(relay.log.filter((line) => /NOPERM|user executing the script/.test(line))).toEqual([]);
});
