import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs, promisify } from "node:util";
import { type EarlierTree, earlierTree } from "../../earlier-tree.ts";
import type { Carried } from "../load/pairs.ts";
import type { Plan } from "../plan.ts";
import { type Cell, inTheSameRounds, rateTrial, ratio, type Trial, windowTrial } from "../suites/relay.ts";
import { BEFORE, type SystemUnderTest } from "../systems.ts";

/**
 * `npm run bench:guard`: fails when an envelope costs more CPU than is recorded, beside the bare relay and beside the relay of an
 * earlier commit. A minute and a half when nothing is wrong. `--record` records what was measured, and the present commit. Source:
 * docs/performance.md#guard.
 */

/** Another program on the machine slows some turns, and the middle of three times as many less. */
const MOST_TRIES = 3;

function isSlower(measured: Ratios): boolean {
  return Object.entries(measured).some(([load, ratio]) => verdictOf(load, ratio, expected) === "slower");
}

/** Full calls, and the small ones of agents that send by themselves. */
const WINDOW = 8;
const RATE = 5000;
const PEER = "bare";
const WINDOW_LOAD = `window ${WINDOW}`;
/** What a call of the system costs differs from machine to machine, and with it the ratio to the bare relay. An earlier commit pays the same. */
const RATE_LOAD = `${RATE} a second`;

/** µs of CPU for one delivered envelope, to what the bare relay needs for one in the same round, by load. */
type Ratios = Readonly<Record<string, number>>;

/** How far a ratio may lie from the one that is recorded. */
const TOLERANCE = 0.2;

/** `slower` breaks the build. `faster` wants to be recorded, so that it is not lost again unnoticed. */
type Verdict = "as it was" | "slower" | "faster";

/** @throws Error when nothing is recorded for the load, or nothing was measured. */
function verdictOf(load: string, measured: number, recorded: Ratios): Verdict {
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
async function recorded(): Promise<Ratios> {
  // The earlier commit costs what it costs.
  return { ...JSON.parse(await readFile(FILE, "utf8")), [RATE_LOAD]: 1 };
}

async function recordedCommit(): Promise<string> {
  return (await readFile(COMMIT_FILE, "utf8")).trim();
}

async function record(ratios: Ratios): Promise<void> {
  const { [RATE_LOAD]: _, ...besidePeers } = ratios;
  const rounded = Object.entries(besidePeers).map(([load, ratio]) => [load, Number(ratio.toFixed(2))]);
  await writeFile(FILE, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
  await writeFile(COMMIT_FILE, (await promisify(execFile)("git", ["rev-parse", "HEAD"])).stdout);
}

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
class Measurements {
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

const { values } = parseArgs({ options: { record: { type: "boolean", default: false } } });
const expected = await recorded();
await using before = await earlierTree(await recordedCommit()).catch((error: Error) => {
  process.stdout.write(`Only one load is measured. ${error.message}\n`);
  return undefined;
});
const measurements = new Measurements(before);
let ratios = await measurements.more();
for (let tries = 1; tries < MOST_TRIES && (values.record || isSlower(ratios)); tries += 1)
  ratios = await measurements.more();

if (values.record) await record(ratios);
const compared = await recorded();
for (const [load, ratio] of Object.entries(ratios)) {
  const verdict = verdictOf(load, ratio, compared);
  process.stdout.write(
    `${load}: ${ratio.toFixed(2)} times the CPU of what it is compared with, recorded ${compared[load]}: ${verdict}\n`,
  );
  if (verdict === "slower") process.exitCode = 1;
}
