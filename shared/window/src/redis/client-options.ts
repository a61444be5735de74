import type { RedisOptions } from "ioredis";
import { REDIS_LIMITS } from "./limits.ts";

/**
 * Options of a client that never waits for long and sends nothing twice by itself.
 * @param url of one Redis.
 * @param retryStrategy milliseconds until the next attempt to connect; asked once a connection that closed.
 */
export function clientOptions(
  url: string,
  name: string,
  retryStrategy: () => number,
): RedisOptions & { replyMapping: "legacy" } {
  return {
    ...endpoint(url),
    connectionName: name,
    lazyConnect: true,
    replyMapping: "legacy",
    // The link asks for INFO itself, and reads more of it.
    enableReadyCheck: false,
    // A failed automatic resubscribe is an unhandled rejection (redis/ioredis 2187): the link subscribes by itself.
    autoResubscribe: false,
    // What was in flight is not sent again: a counter would count twice.
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: REDIS_LIMITS.connectTimeoutMs,
    // A server that hangs does not answer the goodbye either.
    disconnectTimeout: REDIS_LIMITS.disconnectTimeoutMs,
    disableClientInfo: true,
    retryStrategy,
  };
}

function endpoint(url: string) {
  if (url.startsWith("unix://")) return { path: url.slice("unix://".length) };
  const { protocol, hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? 6379 : Number(port),
    db: Number(pathname.slice(1) || "0"),
    ...(username === "" ? {} : { username: decodeURIComponent(username) }),
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" ? { tls: {} } : {}),
  };
}
