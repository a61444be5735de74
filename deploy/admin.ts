import { UsageError } from "./admin/command-line.ts";
import { runAdminCommand } from "./admin/commands.ts";

/** `npm run admin`: asks the admin listeners of pods. See `--help`. */
try {
  process.stdout.write(await runAdminCommand(process.argv.slice(2), process.env));
} catch (error) {
  const isUsageError = error instanceof UsageError;
  const hint = isUsageError ? "\nSee npm run admin -- --help." : "";
  process.stderr.write(`${(error as Error).message}${hint}\n`);
  process.exitCode = isUsageError ? 2 : 1;
}
