import { join } from "node:path";
import { runService } from "runtime/lifecycle.ts";
import { makePackages } from "../packages/make.ts";
import { banner } from "./banner.ts";
import { DEVELOPMENT_FOLDER } from "./dev-keys.ts";
import { provide } from "./provisions.ts";
import { LocalRelay } from "./relay.ts";

/** `npm start`: the whole relay in one process, with a Redis, development keys and packages of its own unless it is given others. */
const { env } = process;
const packages = env.RELAY_PACKAGES_DIR || join(DEVELOPMENT_FOLDER, "packages");
const environment = { ...env, LOG_LEVEL: env.LOG_LEVEL || "warn", RELAY_PACKAGES_DIR: packages };
const [provisions] = await Promise.all([
  provide(environment, DEVELOPMENT_FOLDER),
  env.RELAY_PACKAGES_DIR ? undefined : makePackages(packages),
]);

await runService(process, () => {
  const relay = new LocalRelay(provisions);
  const start = async () => {
    await relay.start();
    const { url: baseUrl, websocketUrl, agents } = relay;
    process.stdout.write(banner({ baseUrl, websocketUrl, apiKey: agents?.api_key }));
  };
  return { service: { start, stop: () => relay.stop() }, logger: relay.logger };
});
