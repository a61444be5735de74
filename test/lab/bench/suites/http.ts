import { setTimeout as delay } from "node:timers/promises";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { HttpClient } from "../../../support/http.ts";
import { TestRelay } from "../../../support/relay.ts";
import { until } from "../../../support/until.ts";
import { instant, type Pids, type Span, spanOf, totalCpu } from "../../accounting.ts";
import { median, type Section, shown } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import { inRounds, type Plan } from "../plan.ts";
import { REDIS, startBareKoa, startGateway } from "../systems.ts";

const CONNECTIONS = 32;
/** One API key is good for so many requests a minute. */
const USES_PER_KEY = 30;
const API_KEYS = 4000;
/** Nobody is online under this name: what is measured is the accept, not the delivery. */
const BODY = JSON.stringify({ from: "agent://load.sender", to: "agent://load.target", message: "x".repeat(100) });

const GATEWAYS = ["Agent Relay", "bare Koa that signs"] as const;
type GatewayName = (typeof GATEWAYS)[number];
type Accepts = Span & { readonly accepted: number; readonly cost: number };

export async function gatewaySections(plan: Plan): Promise<Section[]> {
  const measure = (name: GatewayName) => measureGateway(plan, name);
  const tell = ({ cost }: Accepts) => `${cost.toFixed(0)} µs an accept`;
  const { of, over, data } = await inRounds(plan, "gateway", GATEWAYS, measure, tell);
  const bare = of("bare Koa that signs");
  const ratio = median(of("Agent Relay").map(({ cost }, round) => cost / (bare[round]?.cost ?? Number.NaN)));
  const rows = GATEWAYS.map((name) => [
    name,
    shown(over(name, ({ accepted, seconds }) => accepted / seconds)),
    shown(over(name, ({ cost }) => cost)),
    shown(over(name, ({ accepted, cpu }) => (cpu.gateway ?? Number.NaN) / accepted)),
    shown(over(name, ({ accepted, cpu }) => (cpu[REDIS] ?? Number.NaN) / accepted)),
  ]);
  return [
    {
      title: "Gateway",
      about:
        `\`POST /v1/messages/send\` over ${CONNECTIONS} connections, to a target that is not online. Ours looks up the API ` +
        "key, counts its rate, signs with Ed25519, guards and accepts; the bare one (Koa, koa-body) signs the body and publishes it.",
      head: ["", "accepts/s", "µs an accept", "process", "Redis"],
      rows,
      aims: [{ name: "gateway accept to that of a bare Koa that signs", value: ratio, most: 1.6 }],
      data,
    },
  ];
}

async function measureGateway(plan: Plan, name: GatewayName): Promise<Accepts> {
  const { warmUpMs, measureMs } = plan;
  await using gateway = await (name === "bare Koa that signs"
    ? startBareKoa(API_KEYS)
    : startGateway(plan.ours, API_KEYS));
  await using generator = await Generator.start({ dialect: "bare" });
  const { port, path, apiKeys, pids } = gateway;
  const load = { body: BODY, usesPerKey: USES_PER_KEY, connections: CONNECTIONS, warmUpMs, measureMs };
  const accepts = await generator.post({ port, path, apiKeys, pids, ...load });
  return { ...accepts, cost: totalCpu(accepts) / accepts.accepted };
}

const REPORT = "/api/ops/session-journeys";
/** A surface that makes a journey longer. */
const VISITED = "/api/ops/domain-routing";
/** Longer than ops-reporting keeps what it read. */
const ASK_EVERY_MS = 300;
const SETTINGS = { LOG_LEVEL: "info", RELAY_TRUSTED_PROXY_HOPS: "1" };

/** What a span needed. */
interface Need {
  readonly micros: number;
  readonly redisMicros: number;
  readonly redisBytes: number;
}

/** What the largest report costs, that of the journeys, when the window holds as many as it may. */
export async function reportSections(plan: Plan): Promise<Section[]> {
  const tell = (need: Need) => `${shown(need.micros)} µs, ${shown(need.redisBytes / 1000)} KB`;
  const rounds = await inRounds(plan, "reports", [REPORT], () => measureReport(plan), tell);
  const over = (figure: (need: Need) => number) => rounds.over(REPORT, figure);
  const { journeys, actionsPerJourney } = WINDOW_LIMITS;
  const micros = over((need) => need.micros);
  const kilobytes = over(({ redisBytes }) => redisBytes / 1000);
  return [
    {
      title: "Reports",
      about:
        `\`${REPORT}\` of ${journeys} journeys with ${actionsPerJourney} actions each, asked for every ${ASK_EVERY_MS} ms, so ` +
        "that each is read anew; what ops-reporting and Redis need at rest is taken off.",
      head: ["µs a report", "ops-reporting", "Redis", "KB from Redis"],
      rows: [
        [
          shown(micros),
          shown(micros - over(({ redisMicros }) => redisMicros)),
          shown(over(({ redisMicros }) => redisMicros)),
          shown(kilobytes),
        ],
      ],
      aims: [
        { name: "ms of CPU for a report of a full window", value: micros / 1000, most: 0.5 },
        { name: "KB from Redis for a report of a full window", value: kilobytes, most: 20 },
      ],
      data: rounds.data,
    },
  ];
}

async function measureReport({ warmUpMs, measureMs, ours }: Plan): Promise<Need> {
  const relay = await new TestRelay().start();
  try {
    // Who only reads opens no window.
    await relay.startProcess("gateway", SETTINGS);
    const reporting = await relay.startProcess("ops-reporting", SETTINGS, ours("ops-reporting"));
    const pids: Pids = { reporting: reporting.pid, [REDIS]: await relay.redis.pid() };
    await fillJourneys(reporting.url);
    const ask = async () => {
      const { status } = await visitor(0).get(reporting.url + REPORT);
      if (status !== 200) throw new Error(`A report was refused: ${status}`);
    };
    for (const until = performance.now() + warmUpMs; performance.now() < until; ) await ask();
    const { client } = relay.view();
    const times = Math.ceil(measureMs / ASK_EVERY_MS);
    const needOf = async (work: () => Promise<unknown>): Promise<Need> => {
      const before = { at: instant(pids), bytes: bytesSent(await client.info("stats")) };
      for (let n = 0; n < times; n += 1) await Promise.all([work(), delay(ASK_EVERY_MS)]);
      const span = spanOf(before.at, instant(pids));
      const redisBytes = bytesSent(await client.info("stats")) - before.bytes;
      return { micros: totalCpu(span), redisMicros: span.cpu[REDIS] as number, redisBytes };
    };
    const atRest = await needOf(async () => undefined);
    const asked = await needOf(ask);
    // By itself, so that a profile is written.
    await reporting.end("SIGTERM");
    return {
      micros: (asked.micros - atRest.micros) / times,
      redisMicros: (asked.redisMicros - atRest.redisMicros) / times,
      redisBytes: (asked.redisBytes - atRest.redisBytes) / times,
    };
  } finally {
    await relay.stop();
  }
}

/** Every visitor goes as many steps as a journey may have. */
async function fillJourneys(url: string): Promise<void> {
  const visitors = Array.from({ length: WINDOW_LIMITS.journeys }, (_, n) => visitor(n));
  for (let step = 0; step < WINDOW_LIMITS.actionsPerJourney; step += 1) {
    await Promise.all(visitors.map((one) => one.get(url + VISITED)));
  }
  const all = WINDOW_LIMITS.journeys * WINDOW_LIMITS.actionsPerJourney;
  await until(
    "the journeys are written",
    async () => (await visitor(0).get(url + REPORT)).body.totals.retained_actions === all,
  );
}

function visitor(n: number): HttpClient {
  return new HttpClient({ "x-forwarded-for": `203.0.113.${n}`, "user-agent": "load", "accept-encoding": "identity" });
}

/** What Redis has sent so far, by its own account. */
function bytesSent(stats: string): number {
  return Number(/total_net_output_bytes:(\d+)/.exec(stats)?.[1]);
}
