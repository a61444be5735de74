import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { JEST } from "../../../deploy/local/jest.mjs";
import { type Verdict, verdictOf } from "./verdict.ts";

/** A protection without which a test hangs is noticed by that test's own timeout; this is for a run that never ends. */
const PATIENCE_MS = 600_000;

/** Runs test files of the tree in `folder`. */
export async function tryTests(folder: string, tests: readonly string[]): Promise<Verdict> {
  const report = join(folder, "report.json");
  await rm(report, { force: true });
  const options = ["--runInBand", "--forceExit", "--silent"];
  const output = ["--json", "--outputFile", report, "--cacheDirectory", join(folder, ".jest")];
  const child = spawn(
    process.execPath,
    [...JEST, ...options, ...output, "--selectProjects", "test", "ci", "--runTestsByPath", ...tests],
    {
      cwd: folder,
      stdio: "ignore",
      // A group of its own: services that tests left running end with it.
      detached: true,
    },
  );
  const patience = setTimeout(() => end(child), PATIENCE_MS);
  await once(child, "exit");
  clearTimeout(patience);
  end(child);
  const text = await readFile(report, "utf8").catch(() => null);
  if (text === null) return { kind: "unfit", why: "The run did not come to an end." };
  return verdictOf(JSON.parse(text));
}

function end({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), "SIGKILL");
  } catch {
    // The whole group has ended by itself.
  }
}
