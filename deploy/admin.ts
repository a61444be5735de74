import { run } from "./admin/run.ts";

/** `npm run admin`: asks the admin listeners of pods. See `--help`. */
process.exitCode = await run(process.argv.slice(2), process);
