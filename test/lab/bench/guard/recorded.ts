import { readFile, writeFile } from "node:fs/promises";
import type { Ratios } from "./verdict.ts";

const FILE = new URL("recorded.json", import.meta.url);

/** The ratios that hold, as `npm run bench:guard -- --record` left them. */
export async function recorded(): Promise<Ratios> {
  return JSON.parse(await readFile(FILE, "utf8"));
}

export async function record(ratios: Ratios): Promise<void> {
  const rounded = Object.entries(ratios).map(([load, ratio]) => [load, Number(ratio.toFixed(2))]);
  await writeFile(FILE, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
}
