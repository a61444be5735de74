import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { TrafficDaily } from "relay-protocol/contract/reports/traffic.ts";
import { HttpServer } from "relay-runtime/http/server.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { addFeedback } from "relay-window/counters/counters.ts";
import { readSnapshot } from "relay-window/counters/snapshot.ts";
import { controlKeys } from "relay-window/redis/keys.ts";
import { RedisLink } from "relay-window/redis/redis-link.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { createOpsReporting } from "../src/service.ts";
import { readOpsReportingSettings } from "../src/settings.ts";

const logger = createLogger({ service: "test", level: "silent" });
const redis = new TestRedis();
waitForAnswers();
let link: RedisLink;
let window: ProcessWindow;
let url: string;
let stop: () => Promise<void>;

beforeAll(async () => {
  await redis.start();
  const service = createOpsReporting(readOpsReportingSettings({ REDIS_URL: redis.url }), { logger });
  const server = new HttpServer({ handler: service.handler, host: "127.0.0.1", port: 0, logger });
  await service.start();
  await server.start();
  url = `http://127.0.0.1:${server.port}`;
  link = new RedisLink({ url: redis.url, name: "test", logger });
  window = new ProcessWindow({ link, partitions: 1, deployId: "local", logger });
  stop = async () => {
    await server.stop();
    await service.stop();
    await link.stop();
    await redis.stop();
  };
});
afterAll(() => stop());

const get = (path: string) => fetch(url + path);
/** Answers of the report so far: the views that must have been counted. */
let views = 0;
async function report(path = "/api/ops/traffic-daily"): Promise<TrafficDaily> {
  const answer = await get(path);
  expect(answer.status).toBe(200);
  views += 1;
  return (await answer.json()) as TrafficDaily;
}

test("without a window there is nothing to report, and no window is opened for it", async () => {
  expect((await get("/api/ops/traffic-daily")).status).toBe(503);
  expect((await get("/ready")).status).toBe(503);
  expect((await get("/health")).status).toBe(200);
  await link.start();
  expect(await link.command("HGET", controlKeys.window, "deploy_id")).toBe("local");
});

test("a window that a gateway opened is found without a restart", async () => {
  expect((await get("/ready")).status).toBe(200);
  const { totals, window_started_at } = await report();
  expect(window_started_at).toBe(window.current.startedAt);
  expect(totals.published_envelopes).toBe(0);
});

test("acceptances and feedback stand in the report soon after they were acknowledged", async () => {
  const acceptor = new Acceptor({
    link,
    window,
    pod: "test",
    offlineAfterMs: 300_000,
    proofFreshnessMs: 10_800_000,
    logger,
  });
  const request = (id: string) => ({
    envelope: {
      id,
      type: "session.request",
      from: "agent://alice",
      to: "agent://bob",
      payload: { purpose: "p" },
      ts: Date.now(),
      key_id: "gateway-test",
    },
    kind: "session_request" as const,
    text: "{}",
    origin: "gateway" as const,
    principal: "api:test" as const,
    connection: "",
  });
  for (const id of ["one", "two"]) await new Promise((done) => acceptor.accept({ ...request(id), done }));
  await addFeedback(link, window, { sentiment: "helpful" });

  let { totals, recent_session_proofs } = await report();
  await until("the feedback shows", async () => {
    ({ totals, recent_session_proofs } = await report());
    return totals.feedback_total === 1;
  });
  expect(totals).toMatchObject({
    published_envelopes: 2,
    simple_session_request_accepted: 2,
    simple_session_request_accepted_to_offline_target: 2,
    feedback_total: 1,
  });
  expect(recent_session_proofs.map(({ target, target_status }) => [target, target_status])).toEqual(
    Array(2).fill(["agent://bob", "not_seen"]),
  );
});

test("its own views are counted, an alias under the main surface's name", async () => {
  await report("/api/ops/traffic-summary");
  await get("/api/ops/nothing");
  const snapshot = () => readSnapshot(link, window);
  await until("all views are written", async () => (await snapshot()).traffic.get("surface_views") === views);
  const { traffic, surfaces } = await snapshot();
  expect(Object.fromEntries(traffic)).toEqual({ surface_views: views });
  expect(Object.fromEntries(surfaces)).toEqual({ trafficDaily: views });
  const counted = views;
  const shown = async () => (await report()).top_surfaces[0]?.count ?? 0;
  await until("the report shows them", async () => (await shown()) >= counted);
  expect((await report()).top_surfaces.map(({ name }) => name)).toEqual(["trafficDaily"]);
});

test("an outage is a 503; afterwards it goes on by itself, in the new window", async () => {
  const status = async () => (await get("/api/ops/traffic-daily")).status;
  await redis.kill();
  await until("the outage shows", async () => (await status()) === 503);
  await redis.start();
  await until("it goes on", async () => (await status()) === 200);
  expect((await report()).totals.published_envelopes).toBe(0);
});
