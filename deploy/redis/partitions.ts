import { parseArgs } from "node:util";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "relay-runtime/settings.ts";
import { SLOTS } from "relay-window/redis/partitions.ts";
import { formatPlan } from "./partition-plan.ts";

/**
 * `npm run partitions -- plan <primaries>`: where the partitions of RELAY_PARTITIONS lie on so many primaries of a Redis
 * Cluster, and which slots to move where they do not lie evenly. Asks no Redis. Exit codes: 0, 2 invalid command line,
 * 78 invalid settings. Source: docs/operations.md#scale.
 */

const USAGE = "Usage: RELAY_PARTITIONS=<count> npm run partitions -- plan <primaries>";
const HINT =
  "RELAY_PARTITIONS is not set. For a Redis Cluster it is 12 or 24: RELAY_PARTITIONS=12 npm run partitions -- plan 3\n";
const readSettings = settingsReader("RELAY_PARTITIONS");

try {
  process.stdout.write(said(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = error instanceof SettingsError ? CONFIGURATION_EXIT_CODE : 2;
}

function said(args: string[]): string {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { help: { type: "boolean" } } });
  if (values.help) return `${USAGE}\n`;
  const { partitions } = readSettings(process.env);
  return `${formatPlan(partitions, primariesIn(positionals))}${process.env.RELAY_PARTITIONS ? "" : HINT}`;
}

/** @throws {Error} when the command line is another one. */
function primariesIn([command, count = "", ...rest]: readonly string[]): number {
  const primaries = /^\d+$/.test(count) ? Number(count) : 0;
  if (command !== "plan" || rest.length > 0 || primaries < 1 || primaries > SLOTS) throw new Error(USAGE);
  return primaries;
}
