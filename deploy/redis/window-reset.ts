import { run } from "./window-reset-run.ts";

/** `npm run window:reset [-- --force]`. Source: docs/redis.md#the-process-window. */
process.exitCode = await run(process.argv.slice(2), process);
