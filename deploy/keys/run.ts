import type { Io } from "../local/io.ts";
import { UsageError } from "./command-line.ts";
import { runKeysCommand } from "./commands.ts";
import { NotInForceError } from "./in-force.ts";

/**
 * Runs one command line of `npm run keys`. What a script uses goes to standard output, and every sentence to standard error.
 * Never rejects. @returns the exit code.
 */
export async function run(args: string[], io: Io): Promise<number> {
  try {
    const { text = "", data = "", inForce } = await runKeysCommand(args, io);
    io.stderr.write(text);
    io.stdout.write(data);
    if (inForce !== undefined) io.stderr.write(await inForce());
    return 0;
  } catch (error) {
    const isUsageError = error instanceof UsageError;
    const hint = isUsageError ? "\nSee npm run keys -- --help." : "";
    io.stderr.write(`${(error as Error).message}${hint}\n`);
    return isUsageError ? 2 : error instanceof NotInForceError ? 3 : 1;
  }
}

if (import.meta.main) {
  const code = await run(process.argv.slice(2), process);
  const written = [process.stdout, process.stderr].map(
    (one) => new Promise<void>((done) => one.write("", () => done())),
  );
  await Promise.all(written);
  // A websocket waits without limit for a server that does not answer its close.
  process.exit(code);
}
