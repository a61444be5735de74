import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Span, totalCpu } from "../../accounting.ts";
import { type Aim, median, type Section, shown, times } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import type { Carried, Paced } from "../load/pairs.ts";
import { contendersOf, inTurn, PAIRS, type Plan, TARGETS, titleOf } from "../plan.ts";
import {
  type Contender,
  RECEIVING,
  REDIS,
  SENDING,
  type SystemUnderTest,
  startAgentRelay,
  startContender,
} from "../systems.ts";

/** By window. Source: docs/performance.md#aims. */
const WINDOW_LIMITS: readonly Limits<Cell>[] = [
  {
    name: (window) => `cost to bare ws + ioredis's, window ${window}`,
    peers: ["bare"],
    most: { 1: 1.3, 8: 1, 32: 0.95 },
  },
  {
    name: (window) => `cost to the better Socket.IO's, window ${window}`,
    peers: ["socket.io", "socket.io-sharded"],
    most: { 1: 0.6, 8: 0.4, 32: 0.4 },
  },
];

/** So many in flight per sender. */
export function windowTrial(plan: Plan): Trial<Carried> {
  const { windows, warmUpMs, measureMs } = plan;
  return {
    title: "relay",
    loads: windows,
    warm: (under) => warmPairs(under, plan, Math.max(...windows)),
    measure: ({ pids }, generator, window) => generator.press({ window, warmUpMs, measureMs, pids }),
  };
}

export async function relaySections(plan: Plan): Promise<Section[]> {
  const { systems, windows } = plan;
  const cells = await inTheSameRounds(plan, windowTrial(plan));
  const missing = systems.includes("nats") ? "" : " NATS was not measured: there is no `nats-server` on the PATH.";
  const rows = windows.flatMap((window) =>
    contendersOf(plan).map((system) => [
      titleOf(system, plan),
      String(window),
      ...costCells(cellsOf(cells, system, window)),
      ratioCell(cells, system, window),
    ]),
  );
  return [
    {
      title: "Delivered envelopes",
      about:
        `${PAIRS} senders on one pod, ${PAIRS} targets on another, payload 100 bytes, so many in flight per sender. ` +
        "µs are CPU of all server processes and Redis for one delivered envelope. Ours are signed (HMAC), guarded against " +
        `replay, checked for presence and acknowledged; the peers check nothing.${missing}`,
      head: ["", "window", "delivered/s", "µs", "sending pod", "receiving pod", "Redis", "ours to it"],
      rows,
      aims: aimsOf(WINDOW_LIMITS, cells),
      data: cells,
    },
  ];
}

/** By envelopes a second. Source: docs/performance.md#aims. */
const RATE_LIMITS: readonly Limits<Cell<Paced>>[] = [
  {
    name: (rate) => `cost to that of the bare relay that acks, at ${shown(rate)}/s`,
    peers: ["bare-acks"],
    most: { 1000: 1.25, 5000: 1.2, 10000: 1.2 },
  },
  {
    name: (rate) => `cost in Redis alone to bare ws + ioredis's, at ${shown(rate)}/s`,
    peers: ["bare"],
    figure: shareOf(REDIS),
    most: { 5000: 2 },
  },
  {
    name: (rate) => `the same with RELAY_GATHER_MS=1, at ${shown(rate)}/s`,
    peers: ["bare"],
    own: "agent-relay-gathering",
    figure: shareOf(REDIS),
    most: { 5000: 1.4 },
  },
  {
    name: (rate) => `cost to the better Socket.IO's, at ${shown(rate)}/s`,
    peers: ["socket.io", "socket.io-sharded"],
    most: { 5000: 0.8 },
  },
  {
    name: (rate) => `p99 to bare ws + ioredis's, at ${shown(rate)}/s`,
    peers: ["bare"],
    figure: ({ latency }) => latency.p99,
    most: { 1000: 1.5 },
  },
];

/** So many a second, on schedule. */
export function rateTrial(plan: Plan): Trial<Paced> {
  const { rates, warmUpMs, paceMs } = plan;
  return {
    title: "rates",
    loads: rates,
    warm: (under) => pacedPairs(under, plan, Math.max(...rates)),
    measure: ({ pids }, generator, perSecond) => generator.pace({ perSecond, warmUpMs, measureMs: paceMs, pids }),
  };
}

export async function rateSections(plan: Plan): Promise<Section[]> {
  const { rates } = plan;
  const cells = await inTheSameRounds(plan, rateTrial(plan));
  const rows = rates.flatMap((rate) =>
    contendersOf(plan).map((system) => {
      const own = cellsOf(cells, system, rate);
      const over = (figure: (cell: Paced) => number) => shown(median(own.map(figure)));
      return [
        titleOf(system, plan),
        shown(rate),
        ...costCells(own),
        ratioCell(cells, system, rate),
        over(({ latency }) => latency.p50),
        over(({ latency }) => latency.p99),
        over(({ latency }) => latency.p999),
      ];
    }),
  );
  return [
    {
      title: "Fixed rates",
      about:
        `So many envelopes a second in all, from ${PAIRS} senders in turn, signed ahead, one write each, on a schedule that waits ` +
        "for no answer. µs as above; p50, p99 and p99.9 in ms, from when an envelope was due to its target's read.",
      head: [
        "",
        "a second",
        "delivered/s",
        "µs",
        "sending pod",
        "receiving pod",
        "Redis",
        "ours to it",
        "p50",
        "p99",
        "p99.9",
      ],
      rows,
      aims: aimsOf(RATE_LIMITS, cells),
      data: cells,
    },
  ];
}

/** Ours beside its peers, under the same loads, in the same rounds. */

/** What one system did in one round under one load: a window, or messages a second. */
export type Cell<C extends Carried = Carried> = C & {
  readonly system: Contender;
  readonly round: number;
  readonly load: number;
};

type Figure<C> = (cell: C) => number;

/** µs of CPU for one delivered message, of all processes. */
function costOf(cell: Carried): number {
  return totalCpu(cell) / cell.delivered;
}

/** The same of one of them. */
function shareOf(role: string): (cell: Span & { readonly delivered: number }) => number {
  return ({ cpu, delivered }) => (cpu[role] ?? Number.NaN) / delivered;
}

/** Cells of a table: how many a second, and what one costs, in all and by process. */
function costCells(cells: readonly Cell[]): string[] {
  const over = (figure: Figure<Cell>) => shown(median(cells.map(figure)));
  const perSecond = over(({ delivered, seconds }) => delivered / seconds);
  return [perSecond, over(costOf), ...[SENDING, RECEIVING, REDIS].map((role) => over(shareOf(role)))];
}

function cellsOf<C extends Cell>(cells: readonly C[], system: Contender, load: number): C[] {
  return cells.filter((cell) => cell.system === system && cell.load === load);
}

/** Ours to a peer's, round by round: what slowed a whole round slowed both. NaN where one was not measured. */
export function ratio<C extends Cell>(
  cells: readonly C[],
  peer: Contender,
  load: number,
  figure: Figure<C> = costOf,
  own: Contender = "agent-relay",
): number {
  const ours = new Map(cellsOf(cells, own, load).map((cell) => [cell.round, figure(cell)]));
  const peers = cellsOf(cells, peer, load);
  return median(peers.map((cell) => (ours.get(cell.round) ?? Number.NaN) / figure(cell)));
}

function ratioCell(cells: readonly Cell[], system: Contender, load: number): string {
  return system === "agent-relay" ? "" : times(ratio(cells, system, load));
}

/** At most so many times what the best of some peers needs, by load. */
interface Limits<C> {
  readonly name: (load: number) => string;
  readonly peers: readonly Contender[];
  /** Ours, where it is not as it comes. */
  readonly own?: Contender;
  readonly figure?: Figure<C>;
  readonly most: Readonly<Record<number, number>>;
}

/** The aims for which all was measured. The best peer is the one that is hardest on ours. */
function aimsOf<C extends Cell>(limits: readonly Limits<C>[], cells: readonly C[]): Aim[] {
  const all = limits.flatMap(({ name, peers, own, figure, most }) =>
    Object.entries(most).map(([text, limit]): Aim => {
      const load = Number(text);
      const ratios = peers.map((peer) => ratio(cells, peer, load, figure, own));
      return { name: name(load), value: Math.max(...ratios), most: limit };
    }),
  );
  return all.filter(({ value }) => Number.isFinite(value));
}

/** One measurement, as every system goes through it. */
export interface Trial<C extends Carried> {
  readonly title: string;
  readonly loads: readonly number[];
  /** Connects all who talk through a system, and makes it warm. */
  readonly warm: (under: SystemUnderTest) => Promise<Generator>;
  readonly measure: (under: SystemUnderTest, generator: Generator, load: number) => Promise<C>;
}

/** A system that is up and warm. */
interface Staged {
  readonly system: Contender;
  readonly under: SystemUnderTest;
  readonly generator: Generator;
}

export async function inTheSameRounds<C extends Carried>(plan: Plan, trial: Trial<C>): Promise<Cell<C>[]> {
  const cells: Cell<C>[] = [];
  for (let round = 0; round < plan.rounds; round += 1) cells.push(...(await measureRound(plan, trial, round)));
  return cells;
}

/**
 * All systems are up, in processes that are new, and only one is under load at a time. They take turns load by load, so
 * that what is compared was measured within seconds.
 */
async function measureRound<C extends Carried>(plan: Plan, trial: Trial<C>, round: number): Promise<Cell<C>[]> {
  await using stack = new AsyncDisposableStack();
  const staged: Staged[] = [];
  for (const system of inTurn(contendersOf(plan), round)) {
    const under = stack.use(await startContender(system, plan));
    staged.push({ system, under, generator: stack.use(await trial.warm(under)) });
  }
  const cells: Cell<C>[] = [];
  for (const load of trial.loads) {
    for (const { system, under, generator } of staged) {
      cells.push({ ...(await trial.measure(under, generator, load)), system, round, load });
    }
  }
  for (const { system } of staged) {
    const costs = cells.filter((cell) => cell.system === system).map((cell) => costOf(cell).toFixed(1));
    plan.say(
      `${trial.title}, round ${round + 1}, ${system}: ${costs.join(" / ")} µs an envelope at ${trial.loads.join(" / ")}`,
    );
  }
  return cells;
}

/** A generator whose pairs are connected, and that has made the servers' code warm: they run what they compiled last. */
export async function warmPairs(under: SystemUnderTest, { warmUpMs }: Plan, window: number): Promise<Generator> {
  const generator = await connectedPairs(under);
  await generator.press({ window, warmUpMs: 0, measureMs: 2 * warmUpMs, pids: under.pids });
  return generator;
}

/** The same, warm by a schedule: nothing that was signed for another load stays, to grow old. */
async function pacedPairs(under: SystemUnderTest, { warmUpMs }: Plan, perSecond: number): Promise<Generator> {
  const generator = await connectedPairs(under);
  await generator.pace({ perSecond, warmUpMs, measureMs: warmUpMs, pids: under.pids });
  return generator;
}

async function connectedPairs({ speech, ports }: SystemUnderTest): Promise<Generator> {
  const generator = await Generator.start(speech);
  await generator.pair(ports, TARGETS);
  return generator;
}

const WINDOW = 32;

interface RawVerify {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

export async function ed25519Sections(plan: Plan): Promise<Section[]> {
  const measured: { raw: RawVerify; relay: Carried }[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    // What the machine gives changes from second to second: the relay is held to what it gave before and after.
    const before = await measureRaw(plan);
    const relay = await measureSigned(plan);
    const both = { raw: mean(before, await measureRaw(plan)), relay };
    measured.push(both);
    plan.say(
      `ed25519, round ${round + 1}: ${shown(both.raw.perSecond)} raw, ${shown(perSecond(both.relay))} relayed/s`,
    );
  }
  const over = (figure: (both: (typeof measured)[number]) => number) => median(measured.map(figure));
  return [
    {
      title: "Ed25519",
      about:
        `Envelopes that agents signed with Ed25519, delivered as above at window ${WINDOW}, and the bare verification of ` +
        "as many bytes by libsodium, on as many threads as a pod has, with the machine to itself, before it and after it.",
      head: ["", "a second", "µs of CPU"],
      rows: [
        ["verified only", shown(over(({ raw }) => raw.perSecond)), shown(over(({ raw }) => raw.cpuMicros))],
        [
          "delivered",
          shown(over(({ relay }) => perSecond(relay))),
          shown(over(({ relay }) => totalCpu(relay) / relay.delivered)),
        ],
      ],
      aims: [
        {
          name: "Ed25519 envelopes a second to libsodium's verifications alone",
          value: over(({ raw, relay }) => perSecond(relay) / raw.perSecond),
          least: 0.6,
        },
        {
          name: "CPU of libsodium's verification to an Ed25519 envelope's",
          value: over(({ raw, relay }) => (raw.cpuMicros * relay.delivered) / totalCpu(relay)),
          least: 0.7,
        },
      ],
      data: measured,
    },
  ];
}

function mean(one: RawVerify, other: RawVerify): RawVerify {
  return {
    perSecond: (one.perSecond + other.perSecond) / 2,
    cpuMicros: (one.cpuMicros + other.cpuMicros) / 2,
  };
}

function perSecond({ delivered, seconds }: Carried): number {
  return delivered / seconds;
}

async function measureRaw({ measureMs }: Plan): Promise<RawVerify> {
  const program = fileURLToPath(new URL("../peers/raw-verify.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, String(measureMs)]);
  return JSON.parse(stdout);
}

async function measureSigned(plan: Plan): Promise<Carried> {
  const { warmUpMs, measureMs, ours } = plan;
  await using under = await startAgentRelay(ours, "ed25519");
  await using generator = await warmPairs(under, plan, WINDOW);
  return await generator.press({ window: WINDOW, warmUpMs, measureMs, pids: under.pids });
}
