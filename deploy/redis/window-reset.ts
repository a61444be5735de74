import { parseArgs } from "node:util";
import { createLogger } from "relay-runtime/logging.ts";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "relay-runtime/settings.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import { LINK_DOWN_ADVICE } from "relay-window/redis/link-state.ts";
import { type ResetOutcome, resetWindow } from "relay-window/window/reset.ts";
import type { Io } from "../local/io.ts";

const readSettings = settingsReader("REDIS_URL", "RELAY_PARTITIONS", "RELAY_DEPLOY_ID");

/**
 * Runs one command line of `npm run window:reset`. It opens a new process window when `RELAY_DEPLOY_ID` or `RELAY_PARTITIONS`
 * is not the window's, when the window has an earlier layout, or when it is forced to. Never rejects.
 * Source: docs/redis.md#the-process-window.
 * @returns 0: the window was kept or opened, even if partitions were out of reach. 1: nothing was done, or the outcome is
 * unknown; run it again. 2: invalid command line. 78: invalid settings.
 */
export async function run(args: string[], { env, stdout, stderr }: Omit<Io, "stdin">): Promise<number> {
  try {
    const { values } = parseArgs({ args, options: { force: { type: "boolean", default: false } } });
    stdout.write(textOf(await reset(readSettings(env), values.force)));
    return 0;
  } catch (error) {
    stderr.write(`${(error as Error).message}\n`);
    return exitCodeOf(error);
  }
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

/** What the command prints. @throws {Error} when nothing was done. */
function textOf(reset: ResetOutcome): string {
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
  return `window ${outcome}: ${windowId}${deleted}${left}\n`;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof SettingsError) return CONFIGURATION_EXIT_CODE;
  return (error as NodeJS.ErrnoException).code?.startsWith("ERR_PARSE_ARGS") === true ? 2 : 1;
}

if (import.meta.main) process.exitCode = await run(process.argv.slice(2), process);
