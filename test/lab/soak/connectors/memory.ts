import { ROLLED } from "../fleet.ts";
import { LEAST_CYCLES, VICTIMS, type Victim } from "./plan.ts";

/** Bytes by what takes them, just before a kill or at the end. */
export type Sample = Readonly<Record<string, number>>;

/** Bytes that something takes early and late in the run, without the first cycle, in which everything warms up. */
export interface Course {
  readonly from: number;
  readonly to: number;
}

/** The name in samples of what dies by each kill. */
const TAKEN: Record<Victim, string> = {
  "websocket pod": ROLLED,
  Redis: "Redis, used",
  "TypeScript agents": "TypeScript agents, killed",
  "Python agents": "Python agents, killed",
};

export function isKilled(what: string): boolean {
  return turnOf(what) >= 0;
}

/** Undefined when there were too few cycles to tell. */
export function courseOf(samples: readonly Sample[], what: string): Course | undefined {
  const bytes = samples.map((sample) => sample[what] ?? 0);
  if (Math.floor(bytes.length / VICTIMS.length) < LEAST_CYCLES) return undefined;
  return isKilled(what) ? leanestLives(bytes, turnOf(what)) : lineThroughCycles(bytes);
}

function turnOf(what: string): number {
  return VICTIMS.findIndex((victim) => TAKEN[victim] === what);
}

/**
 * What is killed can hold nothing of an earlier life, but may be given more by the world with each start. So its lives are compared,
 * each when it is a cycle old: the leanest of the later half to the leanest of the earlier, since a single life may by chance
 * take a sixth more from its start on. Source: docs/reliability.md#soak-of-the-connectors.
 */
function leanestLives(bytes: readonly number[], turn: number): Course {
  const lives = bytes.filter((_, n) => n >= VICTIMS.length && n % VICTIMS.length === turn);
  const half = Math.floor(lives.length / 2);
  return { from: Math.min(...lives.slice(0, half)), to: Math.min(...lives.slice(half)) };
}

/** Of the means of cycles: what is killed in a cycle is old and young in each alike. */
function lineThroughCycles(bytes: readonly number[]): Course {
  const means: number[] = [];
  for (let n = VICTIMS.length; n + VICTIMS.length <= bytes.length; n += VICTIMS.length) {
    means.push(mean(bytes.slice(n, n + VICTIMS.length)));
  }
  const middle = (means.length - 1) / 2;
  const level = mean(means);
  const slope =
    sum(means.map((value, n) => (n - middle) * (value - level))) / sum(means.map((_, n) => (n - middle) ** 2));
  return { from: level - slope * middle, to: level + slope * middle };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
