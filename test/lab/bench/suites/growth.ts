import { totalCpu } from "../../accounting.ts";
import { median, type Section, shown } from "../../report.ts";
import type { Carried } from "../load/press.ts";
import { inTurn, PAIRS, type Plan } from "../plan.ts";
import { startSystem } from "../systems/all.ts";
import { warmPairs } from "./warm-pairs.ts";

/** As many as a connection may carry: the question here is what agents cost, not what sockets do. */
const AGENTS_EACH = 100;
const CROWDS = [1000, 10_000, 50_000] as const;
const WINDOW = 8;

type Pressure = Carried & { readonly cost: number };

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
