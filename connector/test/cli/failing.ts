import { expect } from "@jest/globals";
import { jsonLines } from "../kit.ts";
import type { CommandLine } from "./kit.ts";

/** Runs a command line with `--json`, which must fail in this way, and say so in one line. @returns what stderr held. */
export async function expectFailure(
  line: CommandLine,
  args: string[],
  exitCode: number,
  code: string,
  env = {},
): Promise<string> {
  const { code: ended, stdout, stderr } = await line.run(args, { env });
  expect([ended, stdout]).toEqual([exitCode, ""]);
  const reports = jsonLines(stderr).filter(({ event }) => event !== "waiting");
  const [{ retry, ...error }, ...more] = reports as [Record<string, unknown>];
  const texts = { message: expect.any(String), hint: expect.any(String) };
  expect([error, more]).toEqual([{ event: "error", ...texts, code, outcome: "refused" }, []]);
  expect(["never", "fix", "later"]).toContain(retry);
  return stderr;
}
