import { median, type Section, shown, times } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import type { Carried } from "../load/press.ts";
import { inTurn, type Plan } from "../plan.ts";
import { type Bus, startAgentRelay } from "../systems/agent-relay.ts";
import { deployedRedis, redisCluster } from "../systems/redis-cluster.ts";
import { RECEIVING, SENDING } from "../systems/system.ts";
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

/** More than two pods keep up with: they have no core to spare. */
const WINDOW = 128;
const PARTITIONS = [4, ADVISED, 24] as const;

interface Setting {
  readonly name: string;
  readonly bus: () => Bus;
}

const CLUSTERS: readonly Setting[] = PARTITIONS.map((partitions) => ({
  name: titleOf(partitions),
  bus: () => redisCluster(partitions),
}));
const SETTINGS: readonly Setting[] = [{ name: ONE_REDIS, bus: deployedRedis }, ...CLUSTERS];

/** Whole pods at their most. Lanes are many, and pods slower than they: calls are as full as pods make them. */
export async function wholePodSections(plan: Plan): Promise<Section[]> {
  const measured = SETTINGS.map((): Carried[] => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const setting of inTurn(SETTINGS, round)) {
      const carried = await measure(plan, setting.bus());
      measured[SETTINGS.indexOf(setting)]?.push(carried);
      const cost = shown(perEnvelope(carried, busiest));
      plan.say(`cluster, whole pods, round ${round + 1}, ${setting.name}: ${cost} µs in the busiest Redis`);
    }
  }
  const [ofOne = []] = measured;
  const ratio = (n: number, figure: Figure) => toOneRedis(measured[n] ?? [], ofOne, figure);
  const rows = SETTINGS.map(({ name }, n) => {
    const over = (figure: (one: Carried) => number) => shown(median((measured[n] ?? []).map(figure)));
    return [
      name,
      over(({ delivered, seconds }) => delivered / seconds),
      ...[role(SENDING), role(RECEIVING), allRedis, busiest].map((figure) => over((one) => perEnvelope(one, figure))),
      ...(n === 0 ? ["", ""] : [allRedis, busiest].map((figure) => times(ratio(n, figure)))),
    ];
  });
  return [
    {
      title: "A Redis Cluster, whole pods at their most",
      about:
        `${evenTargets().length} pairs over two pods, ${WINDOW} envelopes in flight per sender; µs of CPU an envelope, of the primaries ` +
        "without their replicas. Both are Redis as it is deployed, over TCP. Targets lie evenly in the partitions; of 4 partitions one shard has two.",
      head: ["", "delivered/s", "sending pod", "receiving pod", "all Redis", "busiest", "all to one", "busiest to one"],
      rows,
      aims: [],
      data: { settings: SETTINGS.map(({ name }) => name), measured },
    },
  ];
}

async function measure({ warmUpMs, measureMs, ours }: Plan, bus: Bus): Promise<Carried> {
  await using under = await startAgentRelay(ours, "hmac-sha256", bus);
  await using generator = await Generator.start(under.speech);
  await generator.pair(under.ports, evenTargets());
  const press = { window: WINDOW, warmUpMs, measureMs, pids: under.pids };
  await generator.press({ ...press, warmUpMs: 0, measureMs: 2 * warmUpMs });
  return await generator.press(press);
}

function role(name: string): Figure {
  return ({ cpu }) => cpu[name] ?? Number.NaN;
}
