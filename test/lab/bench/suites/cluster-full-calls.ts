import { REDIS_LIMITS } from "relay-window/redis/limits.ts";
import { median, type Section, shown, times } from "../../report.ts";
import type { Filled } from "../load/sending-pods.ts";
import { inTurn, type Plan } from "../plan.ts";
import type { Bus } from "../systems/agent-relay.ts";
import { deployedRedis, unreplicatedCluster } from "../systems/redis-cluster.ts";
import {
  ADVISED,
  allRedis,
  busiest,
  evenTargets,
  type Figure,
  ONE_REDIS,
  perEnvelope,
  titleOf,
  toOneRedis,
} from "./cluster-settings.ts";
import { PODS, stageAcceptance } from "./staged-acceptance.ts";

/** Calls under way and waiting, a lane: the next one is full when the one before it is answered. */
const CALLS_DEEP = 2;
const PARTITIONS = [4, ADVISED, 24] as const;

interface Setting {
  readonly name: string;
  readonly partitions: number;
  readonly bus: () => Bus;
}

const SETTINGS: readonly Setting[] = [
  { name: ONE_REDIS, partitions: 1, bus: deployedRedis },
  ...PARTITIONS.map((partitions) => ({
    name: titleOf(partitions),
    partitions,
    bus: () => unreplicatedCluster(partitions),
  })),
];
const AT_ADVISED = 1 + PARTITIONS.indexOf(ADVISED);

/** What an envelope costs Redis in calls that carry as many as a call may. */
export async function fullCallSections(plan: Plan): Promise<Section[]> {
  const measured = SETTINGS.map((): Filled[] => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const setting of inTurn(SETTINGS, round)) {
      const filled = await measure(plan, setting);
      measured[SETTINGS.indexOf(setting)]?.push(filled);
      const cost = shown(perEnvelope(filled, busiest));
      plan.say(`cluster, full calls, round ${round + 1}, ${setting.name}: ${cost} µs in the busiest Redis`);
    }
  }
  const [ofOne = []] = measured;
  const ratio = (n: number, figure: Figure) => toOneRedis(measured[n] ?? [], ofOne, figure);
  const over = (n: number, figure: (filled: Filled) => number) => median((measured[n] ?? []).map(figure));
  const rows = SETTINGS.map(({ name }, n) => [
    name,
    shown(over(n, ({ delivered, seconds }) => delivered / seconds)),
    shown(over(n, ({ delivered, calls }) => delivered / calls)),
    ...[allRedis, busiest].map((figure) => shown(over(n, (filled) => perEnvelope(filled, figure)))),
    ...(n === 0 ? ["", ""] : [allRedis, busiest].map((figure) => times(ratio(n, figure)))),
  ]);
  return [
    {
      title: "A Redis Cluster, full calls",
      about:
        `Calls carry up to ${REDIS_LIMITS.acceptanceBatch} envelopes, and so many wait for the next one whenever a call is answered. Envelopes come in, already verified, at what ${PODS} pods have ` +
        "between verification and Redis, in one process, and go to a receiving pod's channels in another. µs of CPU an envelope; primaries have no replicas here. " +
        "Both are Redis as it is deployed, over TCP. Targets lie evenly in the partitions; of 4 partitions one shard has two.",
      head: ["", "delivered/s", "envelopes a call", "all Redis", "busiest", "all to one", "busiest to one"],
      rows,
      aims: [
        {
          name: `cost in the busiest of three primaries to that in one Redis, full calls, ${ADVISED} partitions`,
          value: ratio(AT_ADVISED, busiest),
          most: 1 / 2.4,
        },
        {
          name: `those calls: envelopes in each, ${ADVISED} partitions`,
          value: over(AT_ADVISED, ({ delivered, calls }) => delivered / calls),
          least: REDIS_LIMITS.acceptanceBatch * 0.9,
        },
      ],
      data: { settings: SETTINGS.map(({ name }) => name), measured },
    },
  ];
}

async function measure({ warmUpMs, measureMs }: Plan, { partitions, bus }: Setting): Promise<Filled> {
  await using staged = await stageAcceptance(bus());
  const { load, pids } = staged;
  const inFlight = Math.ceil((CALLS_DEEP * REDIS_LIMITS.acceptanceBatch * partitions) / evenTargets().length);
  await load.fill({ inFlight, warmUpMs: 0, measureMs: 2 * warmUpMs, pids });
  return await load.fill({ inFlight, warmUpMs, measureMs, pids });
}
