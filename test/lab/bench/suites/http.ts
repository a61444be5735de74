import { type Span, totalCpu } from "../../accounting.ts";
import { median, type Section, shown } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import { inTurn, type Plan } from "../plan.ts";
import { startGateway } from "../systems/agent-relay.ts";
import { startBareKoa } from "../systems/peers.ts";
import { REDIS } from "../systems/system.ts";

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
  const measured: Record<GatewayName, Accepts[]> = { "Agent Relay": [], "bare Koa that signs": [] };
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const name of inTurn(GATEWAYS, round)) measured[name].push(await measure(plan, name, round));
  }
  const over = (name: GatewayName, figure: (accepts: Accepts) => number) => median(measured[name].map(figure));
  const ratio = median(
    measured["Agent Relay"].map(
      ({ cost }, round) => cost / (measured["bare Koa that signs"][round]?.cost ?? Number.NaN),
    ),
  );
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
      data: measured,
    },
  ];
}

async function measure(plan: Plan, name: GatewayName, round: number): Promise<Accepts> {
  const { warmUpMs, measureMs } = plan;
  await using gateway = await (name === "bare Koa that signs"
    ? startBareKoa(API_KEYS)
    : startGateway(plan.ours, API_KEYS));
  await using generator = await Generator.start({ dialect: "bare" });
  const { port, path, apiKeys, pids } = gateway;
  const load = { body: BODY, usesPerKey: USES_PER_KEY, connections: CONNECTIONS, warmUpMs, measureMs };
  const accepts = await generator.post({ port, path, apiKeys, pids, ...load });
  const cost = totalCpu(accepts) / accepts.accepted;
  plan.say(`gateway, round ${round + 1}, ${name}: ${cost.toFixed(0)} µs an accept`);
  return { ...accepts, cost };
}
