import type { Logger } from "relay-runtime/logging.ts";
import { isClusterUrl } from "relay-runtime/redis-url.ts";
import { ClusterLinks } from "./cluster-links.ts";
import type { RedisCalls } from "./redis-calls.ts";
import { RedisLink } from "./redis-link.ts";

/** The Redis, or the Redis Cluster, that REDIS_URL names. To be started. */
export function redisAt(options: { readonly url: string; readonly name: string; readonly logger: Logger }): RedisCalls {
  return isClusterUrl(options.url) ? new ClusterLinks(options) : new RedisLink(options);
}
