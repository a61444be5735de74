import { totalCpu } from "../accounting.ts";
import type { Generator } from "../load/generator.ts";
import type { Pressed } from "../load/pairs.ts";
import { inTurn, type Plan } from "../plan.ts";
import { percentile } from "../statistics.ts";
import { startSystem } from "../systems/all.ts";
import type { SystemName, SystemUnderTest } from "../systems/system.ts";
import { warmPairs } from "./warm-pairs.ts";

/** Messages a second at which latency is measured: far below what any system here carries. */
export const PACE_PER_SECOND = 1000;

/** What one system did in one round. */
export interface Round {
  readonly system: SystemName;
  readonly round: number;
  /** By window, in the plan's order. */
  readonly cells: (Pressed & { readonly window: number; readonly cost: number })[];
  /** ms at a fixed modest rate. */
  latency: { readonly p50: number; readonly p99: number };
}

/** A system that is up and warm, with all who talk through it. */
interface Staged {
  readonly under: SystemUnderTest;
  readonly generator: Generator;
  readonly measured: Round;
}

export async function measureRelay(plan: Plan): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let round = 0; round < plan.rounds; round += 1) rounds.push(...(await measureRound(plan, round)));
  return rounds;
}

/**
 * All systems are up, in processes that are new, and only one is under load at a time. They take turns cell by cell, so
 * that what is compared was measured within seconds.
 */
async function measureRound(plan: Plan, round: number): Promise<Round[]> {
  await using stack = new AsyncDisposableStack();
  const { windows, warmUpMs, measureMs } = plan;
  const staged: Staged[] = [];
  for (const system of inTurn(plan.systems, round)) staged.push(await stage(stack, plan, system, round));
  for (const window of windows) {
    for (const { under, generator, measured } of staged) {
      const pressed = await generator.press({ window, warmUpMs, measureMs, pids: under.pids });
      measured.cells.push({ ...pressed, window, cost: totalCpu(pressed) / pressed.delivered });
    }
  }
  for (const { generator, measured } of staged) {
    const latencies = await generator.pace(PACE_PER_SECOND, measureMs);
    measured.latency = { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
  }
  for (const { measured } of staged) {
    const costs = measured.cells.map(({ cost }) => cost.toFixed(1)).join(" / ");
    plan.say(
      `relay, round ${round + 1}, ${measured.system}: ${costs} µs an envelope at windows ${windows.join(" / ")}`,
    );
  }
  return staged.map(({ measured }) => measured);
}

async function stage(stack: AsyncDisposableStack, plan: Plan, system: SystemName, round: number): Promise<Staged> {
  const under = stack.use(await startSystem(system, undefined, plan.ours));
  const generator = stack.use(await warmPairs(under, plan, Math.max(...plan.windows)));
  const latency = { p50: Number.NaN, p99: Number.NaN };
  return { under, generator, measured: { system, round, cells: [], latency } };
}
