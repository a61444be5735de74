import type { Carried } from "../load/press.ts";
import type { Plan } from "../plan.ts";
import { type Cell, ratio } from "../suites/comparison.ts";
import { rateTrial } from "../suites/rates.ts";
import { windowTrial } from "../suites/relay.ts";
import { inTheSameRounds } from "../suites/side-by-side.ts";
import type { Ratios } from "./verdict.ts";

/** Full calls, and the small ones of agents that send by themselves. */
const WINDOW = 8;
const RATE = 5000;
const PEER = "bare";
export const LOADS = [`window ${WINDOW}`, `${RATE} a second`];

/** Short rounds: what is compared was measured within seconds, and the middle one counts. */
const PLAN: Plan = {
  rounds: 3,
  warmUpMs: 500,
  measureMs: 1000,
  windows: [WINDOW],
  rates: [RATE],
  paceMs: 1500,
  systems: ["agent-relay", PEER],
  before: undefined,
  memoryConnections: 0,
  idleConnections: 0,
  idleMs: 0,
  ours: () => [],
  say: (text) => process.stderr.write(`${text}\n`),
};

/** Takes rounds together: the more, the nearer comes the middle one. */
export class Measurements {
  readonly #ofWindow: Cell[] = [];
  readonly #ofRate: Cell[] = [];

  /** @returns the ratios of all rounds so far. */
  async more(): Promise<Ratios> {
    keep(this.#ofWindow, await inTheSameRounds(PLAN, windowTrial(PLAN)));
    keep(this.#ofRate, await inTheSameRounds(PLAN, rateTrial(PLAN)));
    const [window, rate] = LOADS as [string, string];
    return { [window]: ratio(this.#ofWindow, PEER, WINDOW), [rate]: ratio(this.#ofRate, PEER, RATE) };
  }
}

/** Rounds go on to count where the kept ones end. */
function keep(kept: Cell[], cells: readonly Cell<Carried>[]): void {
  const from = Math.max(-1, ...kept.map(({ round }) => round)) + 1;
  kept.push(...cells.map((cell) => ({ ...cell, round: cell.round + from })));
}
