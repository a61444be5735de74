import type { Io } from "../local/io.ts";
import { UsageError } from "./command-line.ts";
import { runKeysCommand } from "./commands.ts";
import { NotInForceError } from "./in-force.ts";

/** Runs one command line of `npm run keys`. Never rejects. @returns the exit code. */
export async function run(args: string[], io: Io): Promise<number> {
  try {
    const { text, inForce } = await runKeysCommand(args, io);
    io.stdout.write(text);
    if (inForce !== undefined) io.stdout.write(await inForce());
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
