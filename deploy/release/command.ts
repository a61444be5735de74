import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const execute = promisify(execFile);
const MOST_OUTPUT_BYTES = 64 * 1024 * 1024;

/** A program did not run, or ended with an error; the message is the last line of what it said. */
export class CommandError extends Error {}

/** Runs a program of the PATH in the repository. @returns what it printed, trimmed. @throws CommandError */
export async function run(program: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await execute(program, args, { cwd: ROOT, maxBuffer: MOST_OUTPUT_BYTES });
    return stdout.trim();
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    const said = stderr.trim().split("\n").at(-1);
    throw new CommandError(`${program} ${args[0]}: ${said || message}`, { cause: error });
  }
}

/** Whether a program, and this part of it, is there. */
export async function isThere(program: string, ...args: readonly string[]): Promise<boolean> {
  return await run(program, args).then(
    () => true,
    () => false,
  );
}
