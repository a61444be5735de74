import type { Io } from "../local/io.ts";
import { UsageError } from "./command-line.ts";
import { runAdminCommand } from "./commands.ts";

/** Runs one command line of `npm run admin`. Never rejects. @returns the exit code. */
export async function run(args: string[], { env, stdout, stderr }: Omit<Io, "stdin">): Promise<number> {
  try {
    const { text, unanswered } = await runAdminCommand(args, env);
    stdout.write(text);
    for (const sentence of unanswered) stderr.write(`${sentence}\n`);
    return unanswered.length > 0 ? 1 : 0;
  } catch (error) {
    const isUsageError = error instanceof UsageError;
    const hint = isUsageError ? "\nSee npm run admin -- --help." : "";
    stderr.write(`${(error as Error).message}${hint}\n`);
    return isUsageError ? 2 : 1;
  }
}

if (import.meta.main) process.exitCode = await run(process.argv.slice(2), process);
