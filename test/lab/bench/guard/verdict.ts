import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";

/** Full calls, and the small ones of agents that send by themselves. */
export const WINDOW = 8;
export const RATE = 5000;
export const PEER = "bare";
export const WINDOW_LOAD = `window ${WINDOW}`;
/** What a call of the system costs differs from machine to machine, and with it the ratio to the bare relay. An earlier commit pays the same. */
export const RATE_LOAD = `${RATE} a second`;
export const LOADS = [WINDOW_LOAD, RATE_LOAD];

/** µs of CPU for one delivered envelope, to what the bare relay needs for one in the same round, by load. */
export type Ratios = Readonly<Record<string, number>>;

/** How far a ratio may lie from the one that is recorded. */
const TOLERANCE = 0.2;

/** `slower` breaks the build. `faster` wants to be recorded, so that it is not lost again unnoticed. */
type Verdict = "as it was" | "slower" | "faster";

/** @throws Error when nothing is recorded for the load, or nothing was measured. */
export function verdictOf(load: string, measured: number, recorded: Ratios): Verdict {
  const expected = recorded[load];
  if (expected === undefined) throw new Error(`Nothing is recorded for: ${load}`);
  if (!Number.isFinite(measured)) throw new Error(`Nothing was measured for: ${load}`);
  if (measured > expected * (1 + TOLERANCE)) return "slower";
  return measured < expected * (1 - TOLERANCE) ? "faster" : "as it was";
}

const FILE = new URL("recorded.json", import.meta.url);
/** The commit that rates are compared with. */
const COMMIT_FILE = new URL("commit", import.meta.url);

/** The ratios that hold, as `npm run bench:guard -- --record` left them. */
export async function recorded(): Promise<Ratios> {
  // The earlier commit costs what it costs.
  return { ...JSON.parse(await readFile(FILE, "utf8")), [RATE_LOAD]: 1 };
}

export async function recordedCommit(): Promise<string> {
  return (await readFile(COMMIT_FILE, "utf8")).trim();
}

export async function record(ratios: Ratios): Promise<void> {
  const { [RATE_LOAD]: _, ...besidePeers } = ratios;
  const rounded = Object.entries(besidePeers).map(([load, ratio]) => [load, Number(ratio.toFixed(2))]);
  await writeFile(FILE, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
  await writeFile(COMMIT_FILE, (await promisify(execFile)("git", ["rev-parse", "HEAD"])).stdout);
}
