import { cpus } from "node:os";
import { PARTITION_TAGS } from "relay-window/redis/keys.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import { type Pids, type Span, totalCpu } from "../../accounting.ts";
import { type Aim, median, type Section, shown, times } from "../../report.ts";
import { AcceptanceLoad } from "../load/acceptance-load.ts";
import type { Filled, Offered } from "../load/acceptance-pods.ts";
import { Generator } from "../load/generator.ts";
import type { Carried } from "../load/pairs.ts";
import { inRounds, type Plan } from "../plan.ts";
import {
  type Bus,
  deployedRedis,
  PRIMARIES,
  RECEIVING,
  REDIS,
  redisCluster,
  SENDING,
  startAgentRelay,
  unreplicatedCluster,
} from "../systems.ts";

/** What a Redis Cluster takes off one Redis, by CPU: two cores cannot saturate three primaries. */
export async function clusterSections(plan: Plan): Promise<Section[]> {
  return [await fullCallSection(plan), await wholePodSection(plan), await capacitySection(plan)];
}

const ONE_REDIS = "one Redis";
/** The number of partitions that is advised. Source: docs/operations.md#scale. */
const ADVISED = 12;
/** As many in each of 24 partitions, and so of 12 and of 4. */
const TARGETS_EACH = 5;
/** Of pods that load Redis alone: as many lanes as they have, so small are the calls at a fixed rate. */
const PODS = 4;

/** Settings by their titles: one Redis is the first, and the others have so many partitions. */
function settingsOf(
  partitions: readonly number[],
  cluster: (partitions: number) => Bus,
): ReadonlyMap<string, () => Bus> {
  const clusters = partitions.map((count) => [titleOf(count), () => cluster(count)] as const);
  return new Map([[ONE_REDIS, deployedRedis], ...clusters]);
}

function titleOf(partitions: number): string {
  return `three primaries, ${partitions} ${partitions === 1 ? "partition" : "partitions"}`;
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

/** What came through, and what it took. */
type Load = Span & { readonly delivered: number };
type Figure = (span: Span) => number;

const perEnvelope = (load: Load, figure: Figure) => figure(load) / load.delivered;
const allRedis: Figure = (span) => redisMicros(span).reduce((sum, micros) => sum + micros, 0);
const busiest: Figure = (span) => Math.max(...redisMicros(span));
const perSecond = ({ delivered, seconds }: Load) => delivered / seconds;
const perCall = ({ delivered, calls }: Filled) => delivered / calls;

function redisMicros({ cpu }: Span): number[] {
  return [REDIS, ...PRIMARIES].flatMap((name) => cpu[name] ?? []);
}

/** The settings in turn, in every round, beside each other. */
async function measured<L extends Load>(
  plan: Plan,
  title: string,
  settings: ReadonlyMap<string, () => Bus>,
  measure: (bus: Bus) => Promise<L>,
  tell = (load: L) => `${shown(perEnvelope(load, busiest))} µs in the busiest Redis`,
) {
  const names = [...settings.keys()];
  const measureOne = (name: string) => measure((settings.get(name) as () => Bus)());
  const { of, over, data } = await inRounds(plan, `cluster, ${title}`, names, measureOne, tell);
  const one = of(ONE_REDIS);
  /** What an envelope took to what it took of one Redis in the same round; the middle of the rounds. */
  const toOne = (name: string, figure: Figure) =>
    median(
      of(name).map((load, round) => {
        const other = one[round];
        return perEnvelope(load, figure) / (other === undefined ? Number.NaN : perEnvelope(other, figure));
      }),
    );
  const ratios = (name: string) =>
    name === ONE_REDIS ? ["", ""] : [allRedis, busiest].map((figure) => times(toOne(name, figure)));
  /** A row for each setting: its figures, and how many times it is one Redis. */
  const rows = (figures: readonly ((load: L) => number)[]) =>
    names.map((name) => [name, ...figures.map((figure) => shown(over(name, figure))), ...ratios(name)]);
  return { names, over, toOne, rows, data: { settings: names, measured: data.map((one) => one.measured) } };
}

const TO_ONE = ["all to one", "busiest to one"];
const SPREAD =
  "Both are Redis as it is deployed, over TCP. Targets lie evenly in the partitions; of 4 partitions one shard has two.";

/** Calls under way and waiting, a lane: the next one is full when the one before it is answered. */
const CALLS_DEEP = 2;

/** What an envelope costs Redis in calls that carry as many as a call may. */
async function fullCallSection(plan: Plan): Promise<Section> {
  const { warmUpMs, measureMs } = plan;
  const measure = async (bus: Bus): Promise<Filled> => {
    await using staged = await stageAcceptance(bus);
    const { load, pids } = staged;
    const inFlight = Math.ceil((CALLS_DEEP * REDIS_LIMITS.acceptanceBatch * bus.partitions) / evenTargets().length);
    await load.fill({ inFlight, warmUpMs: 0, measureMs: 2 * warmUpMs, pids });
    return await load.fill({ inFlight, warmUpMs, measureMs, pids });
  };
  const settings = settingsOf([4, ADVISED, 24], unreplicatedCluster);
  const { over, toOne, rows, data } = await measured(plan, "full calls", settings, measure);
  return {
    title: "A Redis Cluster, full calls",
    about:
      `Calls carry up to ${REDIS_LIMITS.acceptanceBatch} envelopes, and so many wait for the next one whenever a call is answered. Envelopes come in, already verified, at what ${PODS} pods have ` +
      "between verification and Redis, in one process, and go to a receiving pod's channels in another. µs of CPU an envelope; primaries have no replicas here. " +
      SPREAD,
    head: ["", "delivered/s", "envelopes a call", "all Redis", "busiest", ...TO_ONE],
    rows: rows([
      perSecond,
      perCall,
      ...[allRedis, busiest].map((figure) => (filled: Filled) => perEnvelope(filled, figure)),
    ]),
    aims: [
      {
        name: `cost in the busiest of three primaries to that in one Redis, full calls, ${ADVISED} partitions`,
        value: toOne(titleOf(ADVISED), busiest),
        most: 1 / 2.4,
      },
      {
        name: `those calls: envelopes in each, ${ADVISED} partitions`,
        value: over(titleOf(ADVISED), perCall),
        least: REDIS_LIMITS.acceptanceBatch * 0.9,
      },
    ],
    data,
  };
}

/** More than two pods keep up with: they have no core to spare. */
const WINDOW = 128;

/** Whole pods at their most. Lanes are many, and pods slower than they: calls are as full as pods make them. */
async function wholePodSection(plan: Plan): Promise<Section> {
  const { warmUpMs, measureMs, ours } = plan;
  const measure = async (bus: Bus): Promise<Carried> => {
    await using under = await startAgentRelay(ours, "hmac-sha256", bus);
    await using generator = await Generator.start(under.speech);
    await generator.pair(under.ports, evenTargets());
    const press = { window: WINDOW, warmUpMs, measureMs, pids: under.pids };
    await generator.press({ ...press, warmUpMs: 0, measureMs: 2 * warmUpMs });
    return await generator.press(press);
  };
  const ofRole =
    (name: string): Figure =>
    ({ cpu }) =>
      cpu[name] ?? Number.NaN;
  const figures = [ofRole(SENDING), ofRole(RECEIVING), allRedis, busiest];
  const { rows, data } = await measured(plan, "whole pods", settingsOf([4, ADVISED, 24], redisCluster), measure);
  return {
    title: "A Redis Cluster, whole pods at their most",
    about:
      `${evenTargets().length} pairs over two pods, ${WINDOW} envelopes in flight per sender; µs of CPU an envelope, of the primaries ` +
      `without their replicas. ${SPREAD}`,
    head: ["", "delivered/s", "sending pod", "receiving pod", "all Redis", "busiest", ...TO_ONE],
    rows: rows([perSecond, ...figures.map((figure) => (carried: Carried) => perEnvelope(carried, figure))]),
    aims: [],
    data,
  };
}

/** Of a core, that the load takes of one Redis, or as near to it as the looks for its rate come. */
const SHARE = 0.6;
/** A load that is less, or comes in later, is another one: what it shows of the aims counts for nothing. */
const LEAST_SHARE = 0.55;
const MOST_LATE_MS = 5;
const LIMITS = [
  { name: "the busiest of three primaries", figure: busiest, most: 0.7 },
  { name: "all three primaries", figure: allRedis, most: 2 },
] as const;

/** A fixed rate that one Redis has enough to do with, and what three primaries have to do with the same. */
async function capacitySection(plan: Plan): Promise<Section> {
  const { warmUpMs, paceMs } = plan;
  const rate = await rateOf(plan);
  const measure = async (bus: Bus): Promise<Offered> => {
    await using staged = await stageAcceptance(bus);
    const { load, pids } = staged;
    await load.offer({ perSecond: rate, warmUpMs: 0, measureMs: 2 * warmUpMs, pids });
    return await load.offer({ perSecond: rate, warmUpMs, measureMs: paceMs, pids });
  };
  const settings = settingsOf([1, 4, ADVISED, 24], unreplicatedCluster);
  const tell = (offered: Offered) => `${shown(percentOfCore(offered, busiest))} % of a core in the busiest Redis`;
  const { names, over, toOne, rows, data } = await measured(plan, "capacity", settings, measure, tell);
  const share = over(ONE_REDIS, (offered) => percentOfCore(offered, allRedis)) / 100;
  const late = Math.max(...names.map((name) => over(name, ({ sentLate }) => sentLate)));
  const used = Math.max(...names.map((name) => over(name, (offered) => percentOfCore(offered, totalCpu))));
  const ofTheLoad: Figure = (span) => totalCpu(span) - allRedis(span);
  return {
    title: "A Redis Cluster, at a load that one Redis has enough to do with",
    about:
      `${shown(rate)} envelopes a second, evenly spread, which took one Redis to ${shown(100 * share)} % ` +
      `of a core. They come in, already verified, at what ${PODS} pods have between verification and Redis, in one process, and go to a receiving pod's channels in another; ` +
      "websockets and signatures, which would take the cores that three primaries need, are left out. Figures of CPU in % of a core. Primaries have no replicas here. " +
      `Load and Redis together took up to ${shown(used)} % of the machine's ${100 * cpus().length} %; of a hundred envelopes ` +
      `one came in up to ${shown(late)} ms late, and what is late comes in together.`,
    head: ["", "delivered/s", "envelopes a call", "all Redis, %", "busiest, %", "the load, %", ...TO_ONE],
    rows: rows([
      perSecond,
      perCall,
      ...[allRedis, busiest, ofTheLoad].map((figure) => (offered: Offered) => percentOfCore(offered, figure)),
    ]),
    aims: [
      ...LIMITS.map(
        ({ name, figure, most }): Aim => ({
          name: `CPU of ${name} to that of one Redis, at its load, ${ADVISED} partitions`,
          value: toOne(titleOf(ADVISED), figure),
          most,
        }),
      ),
      { name: "that load: share of a core that it takes of one Redis", value: share, least: LEAST_SHARE },
      { name: "that load: ms by which one of a hundred envelopes is late", value: late, most: MOST_LATE_MS },
    ],
    data: { perSecond: rate, ...data },
  };
}

async function rateOf({ warmUpMs, paceMs, say }: Plan): Promise<number> {
  await using staged = await stageAcceptance(deployedRedis());
  const { load, pids } = staged;
  return await rateFor(SHARE, async (perSecond) => {
    const share = percentOfCore(await load.offer({ perSecond, warmUpMs, measureMs: paceMs, pids }), allRedis) / 100;
    say(`cluster, capacity: ${shown(perSecond)} a second take one Redis to ${shown(100 * share)} % of a core`);
    return share;
  });
}

function percentOfCore(span: Span, figure: Figure): number {
  return figure(span) / span.seconds / 1e4;
}

/** A setting that is up, and the pods that load it. */
interface StagedAcceptance extends AsyncDisposable {
  readonly load: AcceptanceLoad;
  /** Of Redis and of the load. */
  readonly pids: Pids;
}

async function stageAcceptance({ relay, partitions, redisPids }: Bus): Promise<StagedAcceptance> {
  await using stack = new AsyncDisposableStack();
  stack.defer(() => relay.stop());
  await relay.start();
  const url = relay.environmentOf("ws-connector").REDIS_URL as string;
  const load = stack.use(await AcceptanceLoad.start({ url, partitions }, PODS, evenTargets()));
  const pids = { ...(await redisPids()), ...load.pids };
  const started = stack.move();
  return { load, pids, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/** Near enough to the share. */
const NEAR = 0.02;
const FIRST_PER_SECOND = 6000;
/** What one process sends. */
const MOST_PER_SECOND = 40_000;
const STEP = 100;
/** No look is at a load that is much more than any before: one that is too much would be refused. */
const LONGEST_STRIDE = 1.5;
const LOOKS = 10;

/**
 * The rate whose load takes a share of a core, looked for in strides, since an envelope costs less the more there are; of those
 * that were looked at the nearest, where none is near enough.
 * @param shareAt the share that a rate takes.
 */
export async function rateFor(share: number, shareAt: (perSecond: number) => Promise<number>): Promise<number> {
  const looks = new Map<number, number>();
  let perSecond = FIRST_PER_SECOND;
  while (looks.size < LOOKS && !looks.has(perSecond)) {
    const found = await shareAt(perSecond);
    looks.set(perSecond, Math.abs(found - share));
    if (Math.abs(found - share) <= NEAR) return perSecond;
    const stride = Math.max(1 / LONGEST_STRIDE, Math.min(LONGEST_STRIDE, share / found));
    perSecond = Math.min(MOST_PER_SECOND, Math.round((perSecond * stride) / STEP) * STEP);
  }
  return [...looks].reduce((best, one) => (one[1] < best[1] ? one : best))[0];
}
