import type { EarlierTree } from "../earlier-tree.ts";
import { median } from "../report.ts";
import { BEFORE, type Contender, type NodeArguments, SYSTEM_TITLES, type SystemName } from "./systems.ts";

/** What one run measures, and for how long. */
export interface Plan {
  /** Each figure is the median of so many rounds, in which the systems take turns. */
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Messages in flight per sender. */
  readonly windows: readonly number[];
  /** Messages a second, on schedule. */
  readonly rates: readonly number[];
  /** How long each rate is kept up: long enough for the slowest of a thousand. */
  readonly paceMs: number;
  /** Those that this machine has. */
  readonly systems: readonly SystemName[];
  /** Whose services are measured beside this tree's, where those are measured beside their peers. */
  readonly before: EarlierTree | undefined;
  readonly memoryConnections: number;
  readonly idleConnections: number;
  /** A first time to warm up, a second to measure. */
  readonly idleMs: number;
  /** For our own servers. */
  readonly ours: NodeArguments;
  /** Tells of progress. */
  readonly say: (text: string) => void;
}

/** Senders, and as many targets. */
export const PAIRS = 50;
export const TARGETS = Array.from({ length: PAIRS }, (_, n) => `agent://load.target-${n}`);

/** All that take part in a comparison, in the order of its tables. */
export function contendersOf({ systems, before }: Pick<Plan, "systems" | "before">): Contender[] {
  return before === undefined ? [...systems] : [...systems, BEFORE];
}

export function titleOf(contender: Contender, { before }: Pick<Plan, "before">): string {
  return contender === BEFORE ? `Agent Relay before (${before?.commit})` : SYSTEM_TITLES[contender];
}

/** The systems in another order each round: none is always the one after the same other. */
export function inTurn<T>(list: readonly T[], round: number): T[] {
  const from = round % list.length;
  return [...list.slice(from), ...list.slice(0, from)];
}

/** What was measured of several systems, settings or kinds, a round after the other. */
interface Rounds<Name, Measured> {
  of(name: Name): readonly Measured[];
  /** Median of the rounds. */
  over(name: Name, figure: (measured: Measured) => number): number;
  /** All of it, in the order of the names. */
  readonly data: readonly { readonly name: Name; readonly measured: readonly Measured[] }[];
}

/** Measures each of these in turn, in every round. @param tell what comes behind its name on the terminal. */
export async function inRounds<Name extends string | number, Measured>(
  { rounds, say }: Pick<Plan, "rounds" | "say">,
  title: string,
  names: readonly Name[],
  measure: (name: Name, round: number) => Promise<Measured>,
  tell: (measured: Measured) => string,
): Promise<Rounds<Name, Measured>> {
  const all = new Map<Name, Measured[]>(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const name of inTurn(names, round)) {
      const measured = await measure(name, round);
      all.get(name)?.push(measured);
      say(`${title}, round ${round + 1}, ${name}: ${tell(measured)}`);
    }
  }
  const of = (name: Name) => all.get(name) ?? [];
  return {
    of,
    over: (name, figure) => median(of(name).map((one) => figure(one))),
    data: names.map((name) => ({ name, measured: of(name) })),
  };
}
