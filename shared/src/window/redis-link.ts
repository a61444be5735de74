import { Redis, type RedisOptions } from "ioredis";
import { RelayError } from "../contract/errors.ts";
import { HTTP_LIMITS, REDIS_LIMITS } from "../contract/limits.ts";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import { loadScripts, SCRIPTS, type ScriptName } from "./scripts.ts";

/** A reply of a script: nested arrays of texts and integers. */
export type Reply = string | number | null | Reply[];

/**
 * One connection to Redis that never waits for long: a command fails within 450 ms, a silent server is noticed by a
 * ping each second, and nothing is sent twice by itself. The process starts and lives on without Redis.
 */
export class RedisLink implements Service {
  readonly client: Redis;
  readonly #logger: Logger;
  readonly #pinged: boolean;
  /** What Redis and the log call this connection. */
  readonly name: string;
  readonly #readyListeners: (() => Promise<void>)[] = [];
  #called: ((tookMs: number, failed: boolean) => void) | undefined;
  #up = false;
  #timer: NodeJS.Timeout | undefined;
  #firstReady: (() => void) | undefined;

  constructor(options: {
    readonly url: string;
    readonly name: string;
    readonly logger: Logger;
    /** False for a link whose owner looks after it in another way. */
    readonly pinged?: boolean;
  }) {
    this.#logger = options.logger;
    this.#pinged = options.pinged ?? true;
    this.name = options.name;
    this.client = new Redis(clientOptions(options.url, options.name));
    this.client.on("error", () => {});
    this.client.on("close", () => this.#down());
    this.client.on("ready", () => void this.#prepare());
  }

  /** True while commands can be sent: connected, scripts loaded. */
  get up(): boolean {
    return this.#up;
  }

  /** Runs on each new connection before the link is up: subscribing, opening the window. A rejection reconnects. */
  onReady(listener: () => Promise<void>): void {
    this.#readyListeners.push(listener);
  }

  /** Tells of each call that was sent: how long it took, and whether it failed. */
  onCall(listener: (tookMs: number, failed: boolean) => void): void {
    this.#called = listener;
  }

  /** Resolves when the link is up, or after a connect timeout: a service starts without Redis and says so in /ready. */
  async start(): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#firstReady = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    this.client.connect().catch(() => {});
    if (this.#pinged) this.#timer = setInterval(() => void this.#watch(), REDIS_LIMITS.pingIntervalMs);
    await ready;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#up = false;
    // A second disconnect would hold the process up for two seconds, waiting for a socket that is closed.
    if (this.client.status !== "end") this.client.disconnect();
  }

  /**
   * Runs a script in one round trip.
   * @throws RelayError `unavailable`: Redis did not answer in time; the outcome is unknown.
   */
  async run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[] = []): Promise<Reply> {
    return await this.#call("script", script, () => this.#evaluate(script, keys, args));
  }

  /** Sends any other command. @throws RelayError `unavailable`. */
  async command(name: string, ...args: readonly (string | number)[]): Promise<Reply> {
    return await this.#call("command", name, () => this.client.call(name, ...args) as Promise<Reply>);
  }

  async #call(kind: "script" | "command", name: string, send: () => Promise<Reply>): Promise<Reply> {
    if (!this.#up) throw unavailable();
    const sentAt = performance.now();
    try {
      const reply = await send();
      this.#called?.(performance.now() - sentAt, false);
      return reply;
    } catch (err) {
      this.#called?.(performance.now() - sentAt, true);
      this.#logger.warn({ err, [kind]: name }, `redis did not carry out a ${kind}`);
      throw this.#failed(err);
    }
  }

  /** After a silence the connection is given up: what comes next is refused at once, not after a silence of its own. */
  #failed(err: unknown): RelayError {
    if (err instanceof Error && err.message === "Command timed out") this.reconnect();
    return unavailable();
  }

  async #evaluate(script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    const { sha, lua } = SCRIPTS[script];
    try {
      return (await this.client.evalsha(sha, keys.length, ...keys, ...args)) as Reply;
    } catch (err) {
      if (!(err instanceof Error) || !err.message.startsWith("NOSCRIPT")) throw err;
      return (await this.client.eval(lua, keys.length, ...keys, ...args)) as Reply;
    }
  }

  async #prepare(): Promise<void> {
    try {
      await loadScripts(this.client);
      this.#up = true;
      for (const listener of this.#readyListeners) await listener();
      this.#logger.info({ link: this.name }, "redis is there");
      this.#firstReady?.();
    } catch (err) {
      this.#logger.warn({ err, link: this.name }, "redis is there but not ready");
      this.reconnect();
    }
  }

  /** Gives up the connection and makes another: for one that is up in name only. */
  reconnect(): void {
    this.#down();
    this.client.disconnect(true);
  }

  async #watch(): Promise<void> {
    if (this.client.status !== "ready") return;
    try {
      await this.client.ping();
    } catch {
      this.reconnect();
    }
  }

  #down(): void {
    if (this.#up) this.#logger.warn({ link: this.name }, "redis is gone");
    this.#up = false;
  }
}

/** The refusal for whatever needs Redis while it does not answer. */
export function unavailable(): RelayError {
  return new RelayError("unavailable", { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
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

function clientOptions(url: string, name: string): RedisOptions & { replyMapping: "legacy" } {
  return {
    ...endpoint(url),
    connectionName: name,
    lazyConnect: true,
    replyMapping: "legacy",
    // A failed automatic resubscribe is an unhandled rejection (redis/ioredis 2187): the bus subscribes by itself.
    autoResubscribe: false,
    // What was in flight is not sent again: a counter would count twice.
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: REDIS_LIMITS.commandTimeoutMs,
    connectTimeout: REDIS_LIMITS.connectTimeoutMs,
    // A server that hangs does not answer the goodbye either.
    disconnectTimeout: REDIS_LIMITS.disconnectTimeoutMs,
    disableClientInfo: true,
    retryStrategy: (attempt) => Math.min(attempt * 50, REDIS_LIMITS.reconnectMaxMs) + Math.random() * 50,
  };
}
