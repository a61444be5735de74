import { runService } from "@agent-relay/shared/lifecycle.ts";
import { banner } from "./banner.ts";
import { DEVELOPMENT_FOLDER, developmentKeys, developmentKeysFile } from "./dev-keys.ts";
import { EmbeddedRedis } from "./embedded-redis.ts";
import { createRelay } from "./relay.ts";

/** `npm start`: the whole relay in one process, with a Redis and development keys of its own unless it is given others. */
const { env } = process;
const redis = new EmbeddedRedis();
if (!env.REDIS_URL) await redis.start();
const agents = env.RELAY_KEYS_FILE ? undefined : await developmentKeys(DEVELOPMENT_FOLDER);

await runService(process, () => {
  const given = {
    ...env,
    LOG_LEVEL: env.LOG_LEVEL || "warn",
    REDIS_URL: env.REDIS_URL || redis.url,
    RELAY_KEYS_FILE: env.RELAY_KEYS_FILE || developmentKeysFile(DEVELOPMENT_FOLDER),
  };
  const { service, logger } = createRelay(given, (served) => {
    process.stdout.write(banner({ ...served, apiKey: agents?.api_key }));
  });
  // Redis goes last: what the services write at their stop is written.
  const stop = async () => {
    await service.stop();
    await redis.stop();
  };
  return { service: { start: service.start, stop }, logger };
});
