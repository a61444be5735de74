import { createLogger } from "runtime/logging.ts";
import { ProcessWindow } from "window/process-window.ts";
import type { RedisCalls } from "window/redis/redis-calls.ts";

/** The window that is open, for who only reads: it is looked for when first asked about. */
export function readingWindow(link: RedisCalls, partitions = 1): ProcessWindow {
  const logger = createLogger({ service: "test", level: "silent" });
  return new ProcessWindow({ link, partitions, deployId: null, logger });
}
