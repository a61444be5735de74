import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { makeHmacKey } from "../../../deploy/keys/make.ts";
import { AgentSocket, hmacKey } from "../../support/agent.ts";
import { HttpClient } from "../../support/http.ts";
import { Ledger, tally, violations } from "../../support/ledger.ts";
import { Exchange, ReturningAgent } from "../../support/returning-agent.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import { ComposeStack, readInside } from "./stack.ts";

const AGENTS = 50;
const MESSAGES_PER_SECOND = 200;
const BACK_WITHIN_MS = 10_000;
const HEARTBEAT_MS = 15_000;
const { record, secret } = makeHmacKey({ id: "fleet", agents: ["agent://fleet.*"] });
const keys = await temporaryFolder();
const keysFile = join(keys.path, "keys.json");
const stack = new ComposeStack({ RELAY_KEYS_FILE: keysFile });
const http = new HttpClient();
const probes: AgentSocket[] = [];
let agents: ReturningAgent[] = [];
const ledger = new Ledger();
let exchange: Exchange | undefined;

beforeAll(async () => {
  await writeFile(keysFile, JSON.stringify({ api_keys: [], signing_keys: [record] }), { mode: 0o600 });
  await stack.clone();
  await stack.deploy();
}, 300_000);
afterAll(async () => {
  await exchange?.stop();
  await Promise.all(agents.map((agent) => agent.stop()));
  await stack.stop();
  await keys[Symbol.asyncDispose]();
}, 60_000);

test("more connectors keep the window, and new connections spread over all of them", async () => {
  const first = await new ReturningAgent(optionsOf(0)).start();
  first.send("message.send", { to: "agent://fleet.absent" });
  await until("the message is counted", async () => (await traffic()).published === 1);
  const before = await traffic();

  await stack.scale("ws-connector", 3);
  expect(await traffic()).toEqual(before);
  expect(first.absences).toEqual([]);
  await first.stop();

  await until(
    "the edge knows all connectors",
    async () => {
      probes.push(await AgentSocket.open(stack.websocketUrl));
      return Math.min(...(await connectionCounts())) > 0;
    },
    30_000,
  );
  await Promise.all(probes.map((probe) => probe.close()));
  await until("the probes are gone", async () => Math.max(...(await connectionCounts())) === 0);

  agents = Array.from({ length: AGENTS }, (_, n) => new ReturningAgent(optionsOf(n)));
  // One after the other: the edge asks for the connectors' addresses once a second, and may miss one for so long.
  for (const agent of agents) await agent.start();
  const counts = await connectionCounts();
  expect(counts).toHaveLength(3);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(counts.reduce((sum, n) => sum + n)).toBe(AGENTS);
}, 90_000);

test("while every connector is replaced under traffic no promise is broken, and every agent is back within 10 s", async () => {
  const { startedAt } = await traffic();
  exchange = new Exchange(agents, MESSAGES_PER_SECOND);
  exchange.start();
  for (const connector of await stack.containers("ws-connector")) {
    await connector.stop();
    expect((await connector.inspect()).State.ExitCode).toBe(0);
    await connector.remove();
    await stack.scale("ws-connector", 3);
    await until("all agents are online", () => agents.every(({ isOnline }) => isOnline), BACK_WITHIN_MS);
  }
  await exchange.stop();

  const { sent, promised } = tally(ledger.content);
  await until("what was promised is delivered", () => violations(ledger.content).length === 0).catch(() => {});
  expect(violations(ledger.content)).toEqual([]);
  expect(promised).toBeGreaterThan(0.9 * sent);
  const absences = agents.flatMap((agent) => agent.absences).sort((a, b) => a - b);
  process.stdout.write(`${figures(absences)}; ${promised} of ${sent} delivered in realtime\n`);
  expect(absences.length).toBeGreaterThanOrEqual(AGENTS);
  expect(absences.at(-1)).toBeLessThan(BACK_WITHIN_MS);
  expect((await traffic()).startedAt).toBe(startedAt);
}, 180_000);

test("agents of connectors that are taken away come back on the one that stays", async () => {
  await stack.scale("ws-connector", 1);
  await until("all agents are online", () => agents.every(({ isOnline }) => isOnline), BACK_WITHIN_MS);
  expect(await connectionCounts()).toEqual([AGENTS]);
  const { body } = await http.get(`${stack.url}/api/onboarding/online-agents`);
  expect(body).toMatchObject({ ok: true, online_agents: AGENTS });
}, 90_000);

test("`docker compose down` ends every service with code 0, connectors with agents too", async () => {
  const startedAt = Date.now();
  await stack.down();
  const codes = await stack.exitCodes(startedAt);
  expect(codes).toEqual({ redis: [0], gateway: [0], "ws-connector": [0], "ops-reporting": [0], edge: [0] });
}, 60_000);

function optionsOf(n: number) {
  return {
    url: stack.websocketUrl,
    id: `agent://fleet.${n}`,
    key: hmacKey("fleet", secret),
    heartbeatMs: HEARTBEAT_MS,
    ledger,
  };
}

async function traffic(): Promise<{ startedAt: number; published: number }> {
  const { body } = await http.get(`${stack.url}/api/ops/traffic-daily`);
  return { startedAt: body.window_started_at, published: body.totals.published_envelopes };
}

/** How many connections each connector has. */
async function connectionCounts(): Promise<number[]> {
  const connectors = await stack.containers("ws-connector");
  return await Promise.all(
    connectors.map(async (one) => {
      const [, count] = /^relay_connections(?:\{.*\})? (\d+)$/m.exec(await readInside(one, "9090/metrics")) ?? [];
      return Number(count);
    }),
  );
}

function figures(sorted: readonly number[]): string {
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
  return `back after ${seconds(median)} (median), ${seconds(sorted.at(-1) ?? 0)} (longest), ${sorted.length} times`;
}
