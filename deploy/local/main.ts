import { join } from "node:path";
import { parseArgs } from "node:util";
import { runService } from "runtime/lifecycle.ts";
import { makePackages } from "../packages/make.ts";
import { banner } from "./banner.ts";
import { DEVELOPMENT_FOLDER } from "./dev-keys.ts";
import { provide } from "./provisions.ts";
import { LocalRelay } from "./relay.ts";

/**
 * `npm start`: the whole relay in one process, with a Redis, development keys and packages of its own unless it is given
 * others. `npm run start:cluster`, which says `--cluster`: the same over a Redis Cluster, with two connector pods.
 */
const { env } = process;
const { values: options } = parseArgs({ options: { cluster: { type: "boolean", default: false } } });
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
    process.stdout.write(banner({ baseUrl, websocketUrl, apiKey: agents?.api_key, shards }));
  };
  return { service: { start, stop: () => relay.stop() }, logger: relay.logger };
});
