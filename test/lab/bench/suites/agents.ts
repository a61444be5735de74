import { type Span, totalCpu } from "../accounting.ts";
import { Generator } from "../load/generator.ts";
import type { Pressed } from "../load/pairs.ts";
import { inTurn, PAIRS, type Plan } from "../plan.ts";
import { type Section, shown } from "../section.ts";
import { median } from "../statistics.ts";
import { startSystem } from "../systems/all.ts";
import { RECEIVING, REDIS, SENDING } from "../systems/system.ts";
import { warmPairs } from "./warm-pairs.ts";

/** As many as a connection may carry: the question here is what agents cost, not what sockets do. */
const AGENTS_EACH = 100;
const BEATING_AGENTS = 20_000;
const BEAT_EVERY_SECONDS = 15;
const CROWDS = [1000, 10_000, 50_000] as const;
const WINDOW = 8;

type Beats = Span & { readonly answered: number };
type Pressure = Pressed & { readonly cost: number };

export async function heartbeatSections(plan: Plan): Promise<Section[]> {
  const measured: Beats[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    const beats = await measureBeats(plan);
    measured.push(beats);
    plan.say(`heartbeats, round ${round + 1}: ${shown(sharePercent(beats))} % of a core`);
  }
  const over = (figure: (beats: Beats) => number) => shown(median(measured.map(figure)));
  const share = (role: string) => over(({ cpu, answered }) => (cpu[role] ?? Number.NaN) / answered);
  return [
    {
      title: "Heartbeats",
      about:
        `${shown(BEATING_AGENTS)} registered agents, ${AGENTS_EACH} on each connection, over two pods, one heartbeat each ` +
        `in ${BEAT_EVERY_SECONDS} s; CPU of both pods and Redis.`,
      head: ["heartbeats/s", "% of one core", "µs a heartbeat", "one pod", "the other", "Redis"],
      rows: [
        [
          over(({ answered, seconds }) => answered / seconds),
          over(sharePercent),
          over((beats) => totalCpu(beats) / beats.answered),
          share(SENDING),
          share(RECEIVING),
          share(REDIS),
        ],
      ],
      aims: [],
      data: measured,
    },
  ];
}

function sharePercent(beats: Beats): number {
  return totalCpu(beats) / beats.seconds / 10_000;
}

async function measureBeats({ warmUpMs, measureMs, ours }: Plan): Promise<Beats> {
  await using under = await startSystem("agent-relay", undefined, ours);
  await using generator = await Generator.start(under.speech);
  await generator.gather(under.ports, BEATING_AGENTS / AGENTS_EACH, AGENTS_EACH);
  const perSecond = BEATING_AGENTS / BEAT_EVERY_SECONDS;
  return await generator.beat({ perSecond, warmUpMs, measureMs, pids: under.pids });
}

export async function growthSections(plan: Plan): Promise<Section[]> {
  const measured = CROWDS.map((): Pressure[] => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const agents of inTurn(CROWDS, round)) {
      const pressure = await measureInCrowd(plan, agents);
      measured[CROWDS.indexOf(agents)]?.push(pressure);
      plan.say(`growth, round ${round + 1}: ${pressure.cost.toFixed(1)} µs an envelope among ${shown(agents)} agents`);
    }
  }
  const costs = measured.map((pressures) => median(pressures.map(({ cost }) => cost)));
  const growth = median(
    (measured.at(-1) ?? []).map(({ cost }, round) => cost / (measured[0]?.[round]?.cost ?? Number.NaN)),
  );
  return [
    {
      title: "Growth",
      about:
        `Cost of a delivered envelope between ${PAIRS} pairs at window ${WINDOW} while so many other agents are ` +
        `registered, ${AGENTS_EACH} on each connection.`,
      head: ["agents", "µs"],
      rows: CROWDS.map((agents, n) => [shown(agents), shown(costs[n] ?? Number.NaN)]),
      aims: [{ name: "cost among 50,000 agents to that among 1,000", value: growth, most: 1.1 }],
      data: CROWDS.map((agents, n) => ({ agents, measured: measured[n] })),
    },
  ];
}

async function measureInCrowd(plan: Plan, agents: number): Promise<Pressure> {
  const { warmUpMs, measureMs, ours } = plan;
  await using under = await startSystem("agent-relay", undefined, ours);
  await using generator = await warmPairs(under, plan, WINDOW);
  await generator.gather(under.ports, agents / AGENTS_EACH, AGENTS_EACH);
  const pressed = await generator.press({ window: WINDOW, warmUpMs, measureMs, pids: under.pids });
  return { ...pressed, cost: totalCpu(pressed) / pressed.delivered };
}
