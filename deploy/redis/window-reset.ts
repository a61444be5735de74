import { parseArgs } from "node:util";
import { createLogger } from "runtime/logging.ts";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "runtime/settings.ts";
import { redisAt } from "window/redis/connect-redis.ts";
import { LINK_DOWN_ADVICE } from "window/redis/link-down.ts";
import { type ResetOutcome, resetWindow } from "window/reset.ts";

/**
 * `npm run window:reset [-- --force]`: opens a new process window when `RELAY_DEPLOY_ID` or `RELAY_PARTITIONS` is not the
 * window's, or its layout is an earlier one, or when told to. Exit codes: 0 kept or opened, also where partitions were out of reach by then, 1
 * nothing done or the outcome is unknown: to be run again, 2 invalid command line, 78 invalid settings.
 * Source: docs/redis.md#the-process-window.
 */

const readSettings = settingsReader("REDIS_URL", "RELAY_PARTITIONS", "RELAY_DEPLOY_ID");

try {
  const { values } = parseArgs({ options: { force: { type: "boolean", default: false } } });
  report(await reset(readSettings(process.env), values.force));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = exitCodeOf(error);
}

async function reset(settings: ReturnType<typeof readSettings>, force: boolean): Promise<ResetOutcome> {
  const logger = createLogger({ service: "window-reset", level: "silent" });
  const link = redisAt({ url: settings.redisUrl, name: "window-reset", logger });
  try {
    await link.start();
    if (link.downKind !== null) {
      throw new Error(
        `No window was opened: Redis cannot be used (${link.downKind}). ${LINK_DOWN_ADVICE[link.downKind]}`,
      );
    }
    return await resetWindow(link, { ...settings, force });
  } finally {
    await link.stop();
  }
}

function report(reset: ResetOutcome): void {
  if (reset.outcome === "foreign") {
    throw new Error(
      `The database contains ${reset.foreignKeys} keys that are not the relay's; nothing was deleted. ` +
        "Set REDIS_URL to a database that only the relay uses.",
    );
  }
  if (reset.outcome === "later_layout") {
    throw new Error(
      `The window has layout ${reset.layout}, of a later version than this one; nothing was changed. ` +
        "Deploy that version, or replace its window with --force.",
    );
  }
  const { outcome, windowId, deletedKeys, leftPartitions } = reset;
  const deleted = outcome === "opened" ? `, ${deletedKeys} keys of the previous one deleted` : "";
  const left =
    leftPartitions > 0 ? `, ${leftPartitions} partitions out of reach: the next reset deletes what is left there` : "";
  process.stdout.write(`window ${outcome}: ${windowId}${deleted}${left}\n`);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof SettingsError) return CONFIGURATION_EXIT_CODE;
  return error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS") ? 2 : 1;
}
