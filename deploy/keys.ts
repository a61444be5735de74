import { mkdirSync } from "node:fs";
import { runKeysCommand, UsageFault } from "./keys/commands.ts";
import { DEVELOPMENT_FOLDER, developmentKeysFile } from "./local/dev-keys.ts";

/** `npm run keys`: edits the keys file. See `--help`. */
try {
  mkdirSync(DEVELOPMENT_FOLDER, { recursive: true, mode: 0o700 });
  const file = process.env.RELAY_KEYS_FILE || developmentKeysFile(DEVELOPMENT_FOLDER);
  process.stdout.write(await runKeysCommand(process.argv.slice(2), file));
} catch (error) {
  const wrongUsage = error instanceof UsageFault;
  const hint = wrongUsage ? "\nnpm run keys -- --help says how." : "";
  process.stderr.write(`${(error as Error).message}${hint}\n`);
  process.exitCode = wrongUsage ? 2 : 1;
}
