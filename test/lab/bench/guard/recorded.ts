import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { RATE_LOAD } from "./measure.ts";
import type { Ratios } from "./verdict.ts";

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
