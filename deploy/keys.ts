import { mkdirSync } from "node:fs";
import { UsageError } from "./keys/command-line.ts";
import { runKeysCommand } from "./keys/commands.ts";
import { NotInForceError } from "./keys/in-force.ts";
import { DEVELOPMENT_FOLDER, developmentKeysFile } from "./local/dev-keys.ts";

/** `npm run keys`: edits the keys file. See `--help`. */
try {
  mkdirSync(DEVELOPMENT_FOLDER, { recursive: true, mode: 0o700 });
  const file = process.env.RELAY_KEYS_FILE || developmentKeysFile(DEVELOPMENT_FOLDER);
  process.stdout.write(await runKeysCommand(process.argv.slice(2), file));
} catch (error) {
  const isUsageError = error instanceof UsageError;
  const hint = isUsageError ? "\nSee npm run keys -- --help." : "";
  process.stderr.write(`${(error as Error).message}${hint}\n`);
  process.exitCode = isUsageError ? 2 : error instanceof NotInForceError ? 3 : 1;
}
