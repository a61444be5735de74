import { type Span, totalCpu } from "../../accounting.ts";
import { type Aim, median, shown, times } from "../../report.ts";
import type { Carried } from "../load/press.ts";
import { type Contender, RECEIVING, REDIS, SENDING } from "../systems/system.ts";

/** Ours beside its peers, under the same loads, in the same rounds. */

/** What one system did in one round under one load: a window, or messages a second. */
export type Cell<C extends Carried = Carried> = C & {
  readonly system: Contender;
  readonly round: number;
  readonly load: number;
};

type Figure<C> = (cell: C) => number;

/** µs of CPU for one delivered message, of all processes. */
export function costOf(cell: Carried): number {
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
