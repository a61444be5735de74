import { parseArgs } from "node:util";
import { createLogger } from "@agent-relay/shared/logging.ts";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "@agent-relay/shared/settings.ts";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { type ResetOutcome, resetWindow } from "@agent-relay/shared/window/reset.ts";

/**
 * `npm run window:reset [-- --force]`: opens a new process window when `RELAY_DEPLOY_ID` is not the window's, or when
 * told to. Exit codes: 0 kept or opened, 1 nothing done, 2 wrong usage, 78 settings at fault.
 * Source: protocol, section 11.
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
  const link = new RedisLink({ url: settings.redisUrl, name: "window-reset", logger });
  try {
    await link.start();
    if (!link.up) throw new Error("Redis is out of reach; no window was opened.");
    return await resetWindow(link, { ...settings, force });
  } finally {
    await link.stop();
  }
}

function report(reset: ResetOutcome): void {
  if (reset.outcome === "foreign") {
    throw new Error(
      `The database holds ${reset.foreignKeys} keys that are not the relay's; nothing was deleted. ` +
        "Give the relay a database of its own in REDIS_URL.",
    );
  }
  const deleted = reset.outcome === "opened" ? `, ${reset.deletedKeys} keys of the old one deleted` : "";
  process.stdout.write(`window ${reset.outcome}: ${reset.windowId}${deleted}\n`);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof SettingsError) return CONFIGURATION_EXIT_CODE;
  return error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS") ? 2 : 1;
}
