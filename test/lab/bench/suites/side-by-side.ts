import type { Generator } from "../load/generator.ts";
import type { Carried } from "../load/press.ts";
import { contendersOf, inTurn, type Plan } from "../plan.ts";
import { startContender } from "../systems/all.ts";
import type { Contender, SystemUnderTest } from "../systems/system.ts";
import { type Cell, costOf } from "./comparison.ts";

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
