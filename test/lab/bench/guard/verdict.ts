/** µs of CPU for one delivered envelope, to what the bare relay needs for one in the same round, by load. */
export type Ratios = Readonly<Record<string, number>>;

/** How far a ratio may lie from the one that is recorded. */
const TOLERANCE = 0.2;

/** `slower` breaks the build. `faster` wants to be recorded, so that it is not lost again unnoticed. */
export type Verdict = "as it was" | "slower" | "faster";

/** @throws Error when nothing is recorded for the load, or nothing was measured. */
export function verdictOf(load: string, measured: number, recorded: Ratios): Verdict {
  const expected = recorded[load];
  if (expected === undefined) throw new Error(`Nothing is recorded for: ${load}`);
  if (!Number.isFinite(measured)) throw new Error(`Nothing was measured for: ${load}`);
  if (measured > expected * (1 + TOLERANCE)) return "slower";
  return measured < expected * (1 - TOLERANCE) ? "faster" : "as it was";
}
