import { type Span, totalCpu } from "../../accounting.ts";
import { type Aim, median, shown, times } from "../../report.ts";
import { Generator } from "../load/generator.ts";
import type { Carried } from "../load/pairs.ts";
import { contendersOf, inTurn, type Plan, TARGETS } from "../plan.ts";
import { startContender } from "../systems/all.ts";
import { type Contender, RECEIVING, REDIS, SENDING, type SystemUnderTest } from "../systems/system.ts";

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
export function shareOf(role: string): (cell: Span & { readonly delivered: number }) => number {
  return ({ cpu, delivered }) => (cpu[role] ?? Number.NaN) / delivered;
}

/** Cells of a table: how many a second, and what one costs, in all and by process. */
export function costCells(cells: readonly Cell[]): string[] {
  const over = (figure: Figure<Cell>) => shown(median(cells.map(figure)));
  const perSecond = over(({ delivered, seconds }) => delivered / seconds);
  return [perSecond, over(costOf), ...[SENDING, RECEIVING, REDIS].map((role) => over(shareOf(role)))];
}

export function cellsOf<C extends Cell>(cells: readonly C[], system: Contender, load: number): C[] {
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

export function ratioCell(cells: readonly Cell[], system: Contender, load: number): string {
  return system === "agent-relay" ? "" : times(ratio(cells, system, load));
}

/** At most so many times what the best of some peers needs, by load. */
export interface Limits<C> {
  readonly name: (load: number) => string;
  readonly peers: readonly Contender[];
  /** Ours, where it is not as it comes. */
  readonly own?: Contender;
  readonly figure?: Figure<C>;
  readonly most: Readonly<Record<number, number>>;
}

/** The aims for which all was measured. The best peer is the one that is hardest on ours. */
export function aimsOf<C extends Cell>(limits: readonly Limits<C>[], cells: readonly C[]): Aim[] {
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
export async function pacedPairs(under: SystemUnderTest, { warmUpMs }: Plan, perSecond: number): Promise<Generator> {
  const generator = await connectedPairs(under);
  await generator.pace({ perSecond, warmUpMs, measureMs: warmUpMs, pids: under.pids });
  return generator;
}

async function connectedPairs({ speech, ports }: SystemUnderTest): Promise<Generator> {
  const generator = await Generator.start(speech);
  await generator.pair(ports, TARGETS);
  return generator;
}
