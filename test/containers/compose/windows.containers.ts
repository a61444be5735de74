import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ed25519Key, type Frame } from "../../support/agent.ts";
import { HttpClient } from "../../support/http.ts";
import { Ledger, tally, violations } from "../../support/ledger.ts";
import { Exchange, ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import { ComposeStack } from "./stack.ts";

const HEARTBEAT_MS = 3000;
/** As the protocol has it, and the way that the question about it takes. */
const PRESENT_WITHIN_MS = 2000 + 1000;
const REFUSED_WITHIN_MS = 1000;
const MESSAGES_PER_SECOND = 50;
const stack = new ComposeStack();
const http = new HttpClient();
const ledger = new Ledger();
const refusals: string[] = [];
let apiKey: string;
let agents: ReturningAgent[] = [];
let exchange: Exchange;

beforeAll(async () => {
  await stack.clone();
  await stack.deploy();
  const { alice, bob, api_key } = await stack.developmentAgents();
  apiKey = api_key;
  const keys = { alice: ed25519Key(alice.key_id, alice.private_key), bob: ed25519Key(bob.key_id, bob.private_key) };
  agents = Object.entries(keys).map(([name, key]) => {
    return new ReturningAgent({
      url: stack.websocketUrl,
      id: `agent://${name}`,
      key,
      heartbeatMs: HEARTBEAT_MS,
      received,
      ledger,
    });
  });
  await Promise.all(agents.map((agent) => agent.start()));
  exchange = new Exchange(agents, MESSAGES_PER_SECOND);
  exchange.start();
}, 300_000);
afterAll(async () => {
  await exchange?.stop();
  await Promise.all(agents.map((agent) => agent.stop()));
  await stack.stop();
}, 60_000);

test("the same images once more keep the window and every connection", async () => {
  await until("messages are counted", async () => (await traffic()).published > 0);
  const before = await traffic();
  await stack.deploy();
  const after = await traffic();
  expect(after.startedAt).toBe(before.startedAt);
  expect(after.published).toBeGreaterThan(before.published);
  expect(agents.map(({ absences }) => absences)).toEqual([[], []]);
}, 120_000);

test("a Redis that dies under traffic and comes back empty ends no connection; agents are present again", async () => {
  const before = await traffic();
  const redis = await stack.container("redis");
  refusals.length = 0;
  const busIsBack = ledger.gap();
  await redis.kill();
  ledger.guardLost();
  await until("envelopes are refused", () => refusals.includes("unavailable"));
  expect(await statusOfSending()).toEqual({ status: 503, code: "unavailable" });
  expect((await http.get(`${stack.url}/health`)).status).toBe(200);

  await redis.start();
  await until("the services are ready", async () => (await http.get(`${stack.url}/ready`)).status === 200);
  await until("both agents are present", bothPresent, PRESENT_WITHIN_MS);
  busIsBack();
  const { promised } = tally(ledger.content);
  await until("messages flow again", () => tally(ledger.content).promised > promised + MESSAGES_PER_SECOND);
  expect(new Set(refusals)).toEqual(new Set(["unavailable"]));
  expect(agents.map(({ absences }) => absences)).toEqual([[], []]);
  expect((await traffic()).startedAt).toBeGreaterThan(before.startedAt);
  await until("what was promised is delivered", () => violations(ledger.content).length === 0).catch(() => {});
  expect(violations(ledger.content)).toEqual([]);
}, 60_000);

test("other images open a new window, its counters at zero, and agents are present again", async () => {
  await exchange.stop();
  await until("what was sent is counted", async () => (await traffic()).published > 0);
  const before = await traffic();
  await appendFile(join(stack.folder, "services/gateway/src/service.ts"), "\n// Another state of the sources.\n");
  await stack.deploy();
  await until("both agents are present", bothPresent, PRESENT_WITHIN_MS);
  const after = await traffic();
  expect(after.startedAt).toBeGreaterThan(before.startedAt);
  expect(after).toMatchObject({ published: 0, sent: 0 });
  expect(await statusOfSending()).toEqual({ status: 202, code: undefined });
}, 180_000);

function received(frame: Frame): void {
  if (frame.frame === "error") refusals.push(frame.code);
}

async function bothPresent(): Promise<boolean> {
  const { body } = await http.get(`${stack.url}/api/onboarding/online-agents`);
  return body.online_agents === agents.length;
}

/** What the gateway says to a message, which it must within a second. */
async function statusOfSending(): Promise<{ status: number; code: string | undefined }> {
  const askedAt = performance.now();
  const message = { from: "agent://alice", to: "agent://bob", message: "through the gateway" };
  const { status, body } = await http.post(`${stack.url}/v1/messages/send`, message, { "x-api-key": apiKey });
  expect(performance.now() - askedAt).toBeLessThan(REFUSED_WITHIN_MS);
  return { status, code: body.code };
}

async function traffic(): Promise<{ startedAt: number; published: number; sent: number }> {
  const { body } = await http.get(`${stack.url}/api/ops/traffic-daily`);
  const { published_envelopes, simple_send_accepted } = body.totals;
  return { startedAt: body.window_started_at, published: published_envelopes, sent: simple_send_accepted };
}
