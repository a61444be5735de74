import { join } from "node:path";
import { parseArgs } from "node:util";
import { runService } from "relay-runtime/lifecycle.ts";
import { makePackages } from "../packages/make.ts";
import { banner } from "./banner.ts";
import { DEVELOPMENT_FOLDER } from "./dev-keys.ts";
import { provide } from "./provisions.ts";
import { LocalRelay } from "./relay.ts";

/**
 * `npm start`: the whole relay in one process, with a Redis, development keys and packages of its own unless it is given
 * others. `npm run start:cluster`, which says `--cluster`: the same over a Redis Cluster, with two connector pods.
 */
const USAGE =
  "npm start takes no options. PORT and the other settings in README.md say what it does. npm run start:cluster is the same on a Redis Cluster.\n";
const INVALID_COMMAND_LINE = 2;
const { env } = process;
const { cluster, help } = commandLine();
const options = { cluster };
if (help) {
  process.stdout.write(USAGE);
  process.exit();
}
const packages = env.RELAY_PACKAGES_DIR || join(DEVELOPMENT_FOLDER, "packages");
const environment = { ...env, LOG_LEVEL: env.LOG_LEVEL || "warn", RELAY_PACKAGES_DIR: packages };
const [provisions] = await Promise.all([
  provide(environment, { keysFolder: DEVELOPMENT_FOLDER, ...options }),
  env.RELAY_PACKAGES_DIR ? undefined : makePackages(packages),
]);

await runService(process, () => {
  const relay = new LocalRelay(provisions, options);
  const start = async () => {
    await relay.start();
    const { url: baseUrl, websocketUrl, agents } = relay;
    const shards = await provisions.cluster?.shards();
    const keysFile = env.RELAY_KEYS_FILE;
    process.stdout.write(banner({ baseUrl, websocketUrl, apiKey: agents?.api_key, keysFile, shards }));
  };
  return { service: { start, stop: () => relay.stop() }, logger: relay.logger };
});

function commandLine(): { readonly cluster: boolean; readonly help: boolean } {
  const option = { type: "boolean", default: false } as const;
  try {
    return parseArgs({ options: { cluster: option, help: option } }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`);
    return process.exit(INVALID_COMMAND_LINE);
  }
}
