import { type Command, Redis, type RedisOptions } from "ioredis";
import { REDIS_LIMITS } from "./redis-limits.ts";

/**
 * Options of a client that never waits long and sends nothing twice by itself.
 * @param url of one Redis.
 * @param retryStrategy returns ms until the next attempt to connect. Called once for each connection that closed.
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
    // A failed automatic resubscribe is an unhandled rejection (redis/ioredis 2187). The link subscribes by itself.
    autoResubscribe: false,
    // A resent command would count twice.
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: REDIS_LIMITS.connectTimeoutMs,
    // A server that hangs does not answer QUIT either.
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

type Stream = Parameters<Redis["sendCommand"]>[1];

/** The client gave up a command without an answer. */
export class CommandTimeoutError extends Error {
  constructor() {
    super("Command timed out");
    this.name = "CommandTimeoutError";
  }
}

/**
 * Gives up each command after 450 ms without an answer, but first reads what has arrived. The `commandTimeout` of
 * ioredis does not: timers run before sockets are read. So a pause of this process (garbage collector, CPU quota) would
 * make answers that arrived count as none.
 */
export class BoundedRedis extends Redis {
  override sendCommand(command: Command, stream?: Stream): unknown {
    const giveUp = () => command.reject(new CommandTimeoutError());
    const timer = setTimeout(() => setImmediate(giveUp), REDIS_LIMITS.commandTimeoutMs);
    const settled = () => clearTimeout(timer);
    command.promise.then(settled, settled);
    return super.sendCommand(command, stream);
  }
}
