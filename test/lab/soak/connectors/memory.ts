import { LEAST_CYCLES, VICTIMS } from "./plan.ts";

/** Bytes by what takes them, just before a kill or at the end. */
export type Sample = Readonly<Record<string, number>>;

/** The line through what the cycles took, without the first, in which everything warms up. */
export interface Line {
  /** Bytes. */
  readonly from: number;
  readonly to: number;
}

/**
 * A cycle's mean: what was killed in it has been old and young in each alike. Undefined when there are too few cycles for a line.
 */
export function lineOf(samples: readonly Sample[], what: string): Line | undefined {
  const means: number[] = [];
  for (let n = VICTIMS.length; n + VICTIMS.length <= samples.length; n += VICTIMS.length) {
    means.push(mean(samples.slice(n, n + VICTIMS.length).map((sample) => sample[what] ?? 0)));
  }
  if (means.length + 1 < LEAST_CYCLES) return undefined;
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
