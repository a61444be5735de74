import { parseArgs } from "node:util";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "runtime/settings.ts";
import { SLOTS } from "window/redis/partitions.ts";
import { formatPlan } from "./partition-plan.ts";

/**
 * `npm run partitions -- plan <primaries>`: where the partitions of RELAY_PARTITIONS lie on so many primaries of a Redis
 * Cluster, and which slots to move where they do not lie evenly. Asks no Redis. Exit codes: 0, 2 invalid command line,
 * 78 invalid settings. Source: docs/operations.md#scale.
 */

const USAGE = "Usage: npm run partitions -- plan <primaries>";
const readSettings = settingsReader("RELAY_PARTITIONS");

try {
  const { partitions } = readSettings(process.env);
  process.stdout.write(formatPlan(partitions, primariesIn(process.argv.slice(2))));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = error instanceof SettingsError ? CONFIGURATION_EXIT_CODE : 2;
}

/** @throws {Error} when the command line is another one. */
function primariesIn(args: string[]): number {
  const [command, count = "", ...rest] = parseArgs({ args, allowPositionals: true, options: {} }).positionals;
  const primaries = /^\d+$/.test(count) ? Number(count) : 0;
  if (command !== "plan" || rest.length > 0 || primaries < 1 || primaries > SLOTS) throw new Error(USAGE);
  return primaries;
}
