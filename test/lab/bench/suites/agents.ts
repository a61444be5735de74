import { type Span, totalCpu } from "../../accounting.ts";
import { median, type Section, shown } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import { inTurn, type Plan } from "../plan.ts";
import { SIGNINGS, type SigningAlgorithm, startAgentRelay } from "../systems/agent-relay.ts";
import { RECEIVING, REDIS, SENDING } from "../systems/system.ts";

/** As many as a connection may carry: the question here is what agents cost, not what sockets do. */
const AGENTS_EACH = 100;
const BEATING_AGENTS = 20_000;
const BEAT_EVERY_SECONDS = 15;
const PER_SECOND = BEATING_AGENTS / BEAT_EVERY_SECONDS;
/** µs at most. Source: docs/performance.md#aims. */
const LIMITS: Readonly<Record<SigningAlgorithm, number>> = { "hmac-sha256": 150, ed25519: 235 };

type Beats = Span & { readonly answered: number };

export async function heartbeatSections(plan: Plan): Promise<Section[]> {
  const measured: Record<SigningAlgorithm, Beats[]> = { "hmac-sha256": [], ed25519: [] };
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const alg of inTurn(SIGNINGS, round)) {
      const beats = await measure(plan, alg);
      measured[alg].push(beats);
      plan.say(`heartbeats, round ${round + 1}, ${alg}: ${shown(costOf(beats))} µs`);
    }
  }
  const over = (alg: SigningAlgorithm, figure: (beats: Beats) => number) => median(measured[alg].map(figure));
  const rows = SIGNINGS.map((alg) => {
    const share = (role: string) => over(alg, ({ cpu, answered }) => (cpu[role] ?? Number.NaN) / answered);
    return [
      alg,
      shown(over(alg, ({ answered, seconds }) => answered / seconds)),
      shown(over(alg, (beats) => totalCpu(beats) / beats.seconds / 10_000)),
      shown(over(alg, costOf)),
      ...[SENDING, RECEIVING, REDIS].map((role) => shown(share(role))),
    ];
  });
  return [
    {
      title: "Heartbeats",
      about:
        `${shown(BEATING_AGENTS)} registered agents, ${AGENTS_EACH} on each connection, over two pods, one heartbeat each ` +
        `in ${BEAT_EVERY_SECONDS} s; CPU of both pods and Redis.`,
      head: ["signed with", "heartbeats/s", "% of one core", "µs a heartbeat", "one pod", "the other", "Redis"],
      rows,
      aims: SIGNINGS.map((alg) => ({
        name: `µs a heartbeat at ${shown(PER_SECOND)}/s, ${alg}`,
        value: over(alg, costOf),
        most: LIMITS[alg],
      })),
      data: measured,
    },
  ];
}

function costOf(beats: Beats): number {
  return totalCpu(beats) / beats.answered;
}

async function measure({ warmUpMs, measureMs, ours }: Plan, alg: SigningAlgorithm): Promise<Beats> {
  await using under = await startAgentRelay(ours, alg);
  await using generator = await Generator.start(under.speech);
  await generator.gather(under.ports, BEATING_AGENTS / AGENTS_EACH, AGENTS_EACH);
  return await generator.beat({ perSecond: PER_SECOND, warmUpMs, measureMs, pids: under.pids });
}
