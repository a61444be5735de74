import type { EarlierTree } from "../../earlier-tree.ts";
import type { Carried } from "../load/pairs.ts";
import type { Plan } from "../plan.ts";
import { type Cell, inTheSameRounds, ratio, type Trial } from "../suites/comparison.ts";
import { rateTrial, windowTrial } from "../suites/relay.ts";
import { BEFORE, type SystemUnderTest } from "../systems/system.ts";
import { PEER, RATE, RATE_LOAD, type Ratios, WINDOW, WINDOW_LOAD } from "./verdict.ts";

/** Both systems take turns so many times in a round. */
const TURNS = 10;

/** The machine's own speed swings within seconds, and turns of a third of a second swing with it alike. */
const PLAN: Plan = {
  rounds: 2,
  warmUpMs: 100,
  measureMs: 250,
  windows: Array(TURNS).fill(WINDOW),
  rates: Array(TURNS).fill(RATE),
  paceMs: 500,
  systems: ["agent-relay", PEER],
  before: undefined,
  memoryConnections: 0,
  idleConnections: 0,
  idleMs: 0,
  ours: () => [],
  say: (text) => process.stderr.write(`${text}\n`),
};

/** An envelope costs twice as much in a process that is new, for about two seconds under load. */
const COMPILING_MS = 2500;

/** Takes turns together: the more, the nearer comes the middle one. */
export class Measurements {
  readonly #ofWindow: Cell[] = [];
  readonly #ofRate: Cell[] = [];
  readonly #ratePlan: Plan | undefined;

  /** @param before the commit that rates are compared with; undefined: they are not measured. */
  constructor(before: EarlierTree | undefined) {
    this.#ratePlan = before && { ...PLAN, systems: ["agent-relay"], before };
  }

  /** @returns the ratios of all turns so far. */
  async more(): Promise<Ratios> {
    const compiling = windowTrial({ ...PLAN, measureMs: COMPILING_MS });
    keep(this.#ofWindow, await inTheSameRounds(PLAN, afterwards(windowTrial(PLAN), compiling, WINDOW)));
    const ofWindow = { [WINDOW_LOAD]: ratio(this.#ofWindow, PEER, WINDOW) };
    if (this.#ratePlan === undefined) return ofWindow;
    keep(this.#ofRate, await inTheSameRounds(this.#ratePlan, rateTrial(this.#ratePlan)));
    return { ...ofWindow, [RATE_LOAD]: ratio(this.#ofRate, BEFORE, RATE) };
  }
}

/** @returns the trial, on pairs that went through the first one already. */
function afterwards<C extends Carried>(trial: Trial<C>, first: Trial<Carried>, load: number): Trial<C> {
  const warm = async (under: SystemUnderTest) => {
    const generator = await trial.warm(under);
    await first.measure(under, generator, load);
    return generator;
  };
  return { ...trial, warm };
}

/** Each turn of both systems counts as a round, after those that are kept. */
function keep(kept: Cell[], cells: readonly Cell<Carried>[]): void {
  const from = kept.length;
  kept.push(...cells.map((cell, n) => ({ ...cell, round: Math.floor((from + n) / 2) })));
}
