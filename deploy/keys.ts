import { run } from "./keys/run.ts";

/** `npm run keys`: edits the keys file. See `--help`. */
process.exitCode = await run(process.argv.slice(2), process);
