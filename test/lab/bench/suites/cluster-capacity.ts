import { cpus } from "node:os";
import { type Span, totalCpu } from "../../accounting.ts";
import { type Aim, median, type Section, shown, times } from "../../report.ts";
import type { Offered } from "../load/sending-pods.ts";
import { inTurn, type Plan } from "../plan.ts";
import type { Bus } from "../systems/agent-relay.ts";
import { deployedRedis, unreplicatedCluster } from "../systems/redis-cluster.ts";
import { ADVISED, allRedis, busiest, type Figure, ONE_REDIS, titleOf, toOneRedis } from "./cluster-settings.ts";
import { rateFor } from "./rate-for-share.ts";
import { PODS, stageAcceptance } from "./staged-acceptance.ts";

/** Of a core, that the load takes of one Redis, or as near to it as the looks for its rate come. */
const SHARE = 0.6;
const PARTITIONS = [1, 4, ADVISED, 24] as const;

interface Setting {
  readonly name: string;
  readonly bus: () => Bus;
}

const ONE: Setting = { name: ONE_REDIS, bus: deployedRedis };
const CLUSTERS: readonly Setting[] = PARTITIONS.map((partitions) => ({
  name: titleOf(partitions),
  bus: () => unreplicatedCluster(partitions),
}));
const SETTINGS: readonly Setting[] = [ONE, ...CLUSTERS];
const AT_ADVISED = 1 + PARTITIONS.indexOf(ADVISED);
/** A load that is less, or comes in later, is another one: what it shows of the aims counts for nothing. */
const LEAST_SHARE = 0.55;
const MOST_LATE_MS = 5;
const LIMITS = [
  { name: "the busiest of three primaries", figure: busiest, most: 0.7 },
  { name: "all three primaries", figure: allRedis, most: 2 },
] as const;

/** A fixed rate that one Redis has enough to do with, and what three primaries have to do with the same. */
export async function capacitySections(plan: Plan): Promise<Section[]> {
  const perSecond = await rateOf(plan);
  const measured = SETTINGS.map((): Offered[] => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const setting of inTurn(SETTINGS, round)) {
      const offered = await measure(plan, setting, perSecond);
      measured[SETTINGS.indexOf(setting)]?.push(offered);
      const percent = shown(percentOfCore(offered, busiest));
      plan.say(`cluster, capacity, round ${round + 1}, ${setting.name}: ${percent} % of a core in the busiest Redis`);
    }
  }
  const [ofOne = []] = measured;
  const ratio = (n: number, figure: Figure) => toOneRedis(measured[n] ?? [], ofOne, figure);
  const over = (n: number, figure: (offered: Offered) => number) => median((measured[n] ?? []).map(figure));
  const rows = SETTINGS.map(({ name }, n) => [
    name,
    shown(over(n, ({ delivered, seconds }) => delivered / seconds)),
    shown(over(n, ({ delivered, calls }) => delivered / calls)),
    ...[allRedis, busiest, ofTheLoad].map((figure) => shown(over(n, (offered) => percentOfCore(offered, figure)))),
    ...(n === 0 ? ["", ""] : [allRedis, busiest].map((figure) => times(ratio(n, figure)))),
  ]);
  const share = over(0, (offered) => percentOfCore(offered, allRedis)) / 100;
  const late = Math.max(...SETTINGS.map((_, n) => over(n, ({ sentLate }) => sentLate)));
  const used = Math.max(...SETTINGS.map((_, n) => over(n, (offered) => percentOfCore(offered, totalCpu))));
  return [
    {
      title: "A Redis Cluster, at a load that one Redis has enough to do with",
      about:
        `${shown(perSecond)} envelopes a second, evenly spread, which took one Redis to ${shown(100 * share)} % ` +
        `of a core. They come in, already verified, at what ${PODS} pods have between verification and Redis, in one process, and go to a receiving pod's channels in another; ` +
        "websockets and signatures, which would take the cores that three primaries need, are left out. Figures of CPU in % of a core. Primaries have no replicas here. " +
        `Load and Redis together took up to ${shown(used)} % of the machine's ${100 * cpus().length} %; of a hundred envelopes ` +
        `one came in up to ${shown(late)} ms late, and what is late comes in together.`,
      head: [
        "",
        "delivered/s",
        "envelopes a call",
        "all Redis, %",
        "busiest, %",
        "the load, %",
        "all to one",
        "busiest to one",
      ],
      rows,
      aims: [
        ...LIMITS.map(
          ({ name, figure, most }): Aim => ({
            name: `CPU of ${name} to that of one Redis, at its load, ${ADVISED} partitions`,
            value: ratio(AT_ADVISED, figure),
            most,
          }),
        ),
        { name: "that load: share of a core that it takes of one Redis", value: share, least: LEAST_SHARE },
        { name: "that load: ms by which one of a hundred envelopes is late", value: late, most: MOST_LATE_MS },
      ],
      data: { perSecond, settings: SETTINGS.map(({ name }) => name), measured },
    },
  ];
}

async function rateOf({ warmUpMs, paceMs, say }: Plan): Promise<number> {
  await using staged = await stageAcceptance(ONE.bus());
  const { load, pids } = staged;
  const look = async (perSecond: number) => {
    const share = percentOfCore(await load.offer({ perSecond, warmUpMs, measureMs: paceMs, pids }), allRedis) / 100;
    say(`cluster, capacity: ${shown(perSecond)} a second take one Redis to ${shown(100 * share)} % of a core`);
    return share;
  };
  return await rateFor(SHARE, look);
}

async function measure({ warmUpMs, paceMs }: Plan, setting: Setting, perSecond: number): Promise<Offered> {
  await using staged = await stageAcceptance(setting.bus());
  const { load, pids } = staged;
  await load.offer({ perSecond, warmUpMs: 0, measureMs: 2 * warmUpMs, pids });
  return await load.offer({ perSecond, warmUpMs, measureMs: paceMs, pids });
}

function percentOfCore(span: Span, figure: Figure): number {
  return figure(span) / span.seconds / 1e4;
}

function ofTheLoad(span: Span): number {
  return totalCpu(span) - allRedis(span);
}
