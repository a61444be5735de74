import { UsageError } from "./admin/command-line.ts";
import { runAdminCommand } from "./admin/commands.ts";

/** `npm run admin`: asks the admin listeners of pods. See `--help`. */
try {
  const { text, unanswered } = await runAdminCommand(process.argv.slice(2), process.env);
  process.stdout.write(text);
  if (unanswered.length > 0) {
    process.stderr.write(`${unanswered.join("\n")}\n`);
    process.exitCode = 1;
  }
} catch (error) {
  const isUsageError = error instanceof UsageError;
  const hint = isUsageError ? "\nSee npm run admin -- --help." : "";
  process.stderr.write(`${(error as Error).message}${hint}\n`);
  process.exitCode = isUsageError ? 2 : 1;
}
