import { PARTITION_TAGS } from "window/redis/partition-tags.ts";
import { partitionOf } from "window/redis/partitions.ts";
import type { Span } from "../accounting.ts";
import { Generator } from "../load/generator.ts";
import type { Paced } from "../load/pace.ts";
import type { Carried } from "../load/press.ts";
import { inTurn, type Plan } from "../plan.ts";
import { type Section, shown, times } from "../section.ts";
import { median } from "../statistics.ts";
import { type Bus, startAgentRelay } from "../systems/agent-relay.ts";
import { deployedRedis, PRIMARIES, redisCluster } from "../systems/redis-cluster.ts";
import { RECEIVING, REDIS, SENDING, type SystemUnderTest } from "../systems/system.ts";

/** As many in each of 24 partitions, and so of 12 and of 4. */
const TARGETS_EACH = 5;
/** Enough in flight for calls that are full, however many lanes there are. */
const WINDOW = 128;
/** Many lanes with little to do each, as with many pods: calls of few envelopes, of which two cores can make enough. */
const PACED_PODS = 4;
/** The load at a fixed rate takes one Redis to this share of a core, or as near to it as two cores come beside all else. */
const SHARE = 0.6;
const PROBED_PER_SECOND = 4000;
const MOST_PER_SECOND = 10_000;
const PARTITIONS = [4, 12, 24] as const;
/** The number that is advised. Source: docs/operations.md#scale. */
const ADVISED = 12;

interface Setting {
  readonly name: string;
  readonly bus: (sendingPods: number) => Bus;
}

interface Measured {
  readonly full: Carried;
  readonly paced: Paced;
}

const ONE: Setting = { name: "one Redis", bus: deployedRedis };
const CLUSTERS: readonly Setting[] = PARTITIONS.map((partitions) => ({
  name: `three primaries, ${partitions} partitions`,
  bus: (sendingPods) => redisCluster(partitions, sendingPods),
}));
const SETTINGS: readonly Setting[] = [ONE, ...CLUSTERS];

/** What a Redis Cluster takes off one Redis, by CPU: two cores cannot saturate three primaries. */
export async function clusterSections(plan: Plan): Promise<Section[]> {
  const perSecond = await rateOf(plan);
  const measured = SETTINGS.map((): Measured[] => []);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const setting of inTurn(SETTINGS, round)) {
      const one = await measure(plan, setting, perSecond);
      measured[SETTINGS.indexOf(setting)]?.push(one);
      const costs = [one.full, one.paced].map((carried) => shown(perEnvelope(carried, busiest)));
      plan.say(`cluster, round ${round + 1}, ${setting.name}: ${costs.join(" / ")} µs in the busiest Redis`);
    }
  }
  const over = (setting: number, figure: (one: Measured, round: number) => number) =>
    median((measured[setting] ?? []).map(figure));
  /** To what one Redis took in the same round. */
  const ratio = (setting: number, load: keyof Measured, figure: (cpu: Span) => number) =>
    over(setting, (one, round) => {
      const base = measured[0]?.[round]?.[load];
      return perEnvelope(one[load], figure) / (base === undefined ? Number.NaN : perEnvelope(base, figure));
    });
  const rowsOf = (load: keyof Measured) =>
    SETTINGS.map(({ name }, n) => [
      name,
      shown(over(n, (one) => one[load].delivered / one[load].seconds)),
      ...[role(SENDING), role(RECEIVING), allRedis, busiest].map((figure) =>
        shown(over(n, (one) => perEnvelope(one[load], figure))),
      ),
      ...(n === 0 ? ["", ""] : [allRedis, busiest].map((figure) => times(ratio(n, load, figure)))),
    ]);
  const head = [
    "",
    "delivered/s",
    "sending pod",
    "receiving pod",
    "all Redis",
    "busiest",
    "all to one",
    "busiest to one",
  ];
  const advised = SETTINGS.indexOf(CLUSTERS[PARTITIONS.indexOf(ADVISED)] as Setting);
  const share = over(0, ({ paced }) => allRedis(paced) / paced.seconds / 1e6);
  return [
    {
      title: "A Redis Cluster, full calls",
      about:
        `${evenTargets().length} pairs over two pods, ${WINDOW} envelopes in flight per sender; µs of CPU an envelope, of the primaries ` +
        "without their replicas. Both are Redis as it is deployed, over TCP. Targets lie evenly in the partitions; of 4 partitions one shard has two.",
      head,
      rows: rowsOf("full"),
      aims: [
        {
          name: `cost in the busiest of three primaries to that in one Redis, full calls, ${ADVISED} partitions`,
          value: ratio(advised, "full", busiest),
          most: 1 / 2.4,
        },
      ],
      data: { settings: SETTINGS.map(({ name }) => name), measured },
    },
    {
      title: "A Redis Cluster, at a fixed rate",
      about:
        `The same at ${shown(perSecond)} envelopes a second, from ${PACED_PODS} sending pods, so that calls are small; they took one Redis to ` +
        `${shown(100 * share)} % of a core.`,
      head,
      rows: rowsOf("paced"),
      aims: [
        {
          name: `cost in the busiest of three primaries to that in one Redis, fixed rate, ${ADVISED} partitions`,
          value: ratio(advised, "paced", busiest),
          most: 0.7,
        },
        {
          name: `cost in all three primaries to that in one Redis, fixed rate, ${ADVISED} partitions`,
          value: ratio(advised, "paced", allRedis),
          most: 2,
        },
      ],
      data: { perSecond, share },
    },
  ];
}

/** Envelopes a second at which one Redis takes its share, by what one costs it at a rate that any machine carries. */
async function rateOf(plan: Plan): Promise<number> {
  await using under = await startAgentRelay(plan.ours, "hmac-sha256", ONE.bus(PACED_PODS));
  await using generator = await pairs(under);
  let perSecond = PROBED_PER_SECOND;
  // An envelope costs less the more there are: the second look is near enough.
  for (let look = 0; look < 2; look += 1) {
    const probed = await paceAt(plan, under, generator, perSecond);
    const most = (SHARE * 1e6) / perEnvelope(probed, allRedis);
    perSecond = Math.round(Math.min(most, MOST_PER_SECOND) / 500) * 500;
  }
  return perSecond;
}

async function measure(plan: Plan, { bus }: Setting, perSecond: number): Promise<Measured> {
  return { full: await measureFull(plan, bus(1)), paced: await measurePaced(plan, bus(PACED_PODS), perSecond) };
}

async function measureFull({ warmUpMs, measureMs, ours }: Plan, bus: Bus): Promise<Carried> {
  await using under = await startAgentRelay(ours, "hmac-sha256", bus);
  await using generator = await pairs(under);
  const press = { window: WINDOW, warmUpMs, measureMs, pids: under.pids };
  await generator.press({ ...press, warmUpMs: 0, measureMs: 2 * warmUpMs });
  return await generator.press(press);
}

async function measurePaced(plan: Plan, bus: Bus, perSecond: number): Promise<Paced> {
  await using under = await startAgentRelay(plan.ours, "hmac-sha256", bus);
  await using generator = await pairs(under);
  await paceAt(plan, under, generator, perSecond);
  return await paceAt(plan, under, generator, perSecond);
}

async function pairs({ speech, ports }: SystemUnderTest): Promise<Generator> {
  const generator = await Generator.start(speech);
  await generator.pair(ports, evenTargets());
  return generator;
}

async function paceAt(
  { warmUpMs, paceMs }: Plan,
  { pids }: SystemUnderTest,
  generator: Generator,
  perSecond: number,
): Promise<Paced> {
  return await generator.pace({ perSecond, warmUpMs, measureMs: paceMs, pids });
}

/** No shard is busier than another by chance. */
function evenTargets(): string[] {
  const targets: string[] = [];
  const missing = new Map(PARTITION_TAGS.map((_, partition) => [partition, TARGETS_EACH]));
  for (let n = 0; missing.size > 0; n += 1) {
    const name = `agent://load.target-${n}`;
    const partition = partitionOf(name, PARTITION_TAGS.length);
    const left = missing.get(partition);
    if (left === undefined) continue;
    targets.push(name);
    if (left === 1) missing.delete(partition);
    else missing.set(partition, left - 1);
  }
  return targets;
}

function perEnvelope(carried: Carried, figure: (span: Span) => number): number {
  return figure(carried) / carried.delivered;
}

/** Of all processes whose names begin so. */
function role(name: string): (span: Span) => number {
  return ({ cpu }) => sumOf(Object.entries(cpu).flatMap(([one, micros]) => (one.startsWith(name) ? [micros] : [])));
}

function redisMicros({ cpu }: Span): number[] {
  return [REDIS, ...PRIMARIES].flatMap((name) => cpu[name] ?? []);
}

function allRedis(span: Span): number {
  return sumOf(redisMicros(span));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, n) => sum + n, 0);
}

function busiest(span: Span): number {
  return Math.max(...redisMicros(span));
}
