import { AsyncLocalStorage } from "node:async_hooks";
import type { Redis } from "ioredis";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { BoundedRedis } from "./bounded-redis.ts";
import { clientOptions } from "./client-options.ts";
import { DeadlineCalls } from "./deadline-calls.ts";
import { REDIS_LIMITS } from "./limits.ts";
import { endsConnection, LinkDownError, linkDown, reasonOf, unlessElsewhere } from "./link-down.ts";
import { LinkState } from "./link-state.ts";
import type { RedisCalls, ServerLink, SubscribingLink } from "./redis-calls.ts";
import type { RedisMemory } from "./redis-memory.ts";
import type { Replicas } from "./replica-progress.ts";
import { loadScripts, type Reply, runScript, type ScriptName } from "./scripts.ts";
import { checkCoverage, checkPolicy, checkServer } from "./server-check.ts";
import { ServerInfo } from "./server-info.ts";
import { Subscriptions } from "./subscriptions.ts";
import { unavailable } from "./unavailable.ts";

export interface RedisLinkOptions {
  readonly url: string;
  readonly name: string;
  readonly logger: Logger;
  /** False for a link whose owner looks after it in another way. */
  readonly watched?: boolean;
  /** True for a link to a node of a Redis Cluster. */
  readonly isNode?: boolean;
}

/**
 * One connection to Redis that never waits for long: a command fails within 450 ms, a silent server is noticed within a
 * second or two, and nothing is sent twice by itself. The process starts and lives on without Redis.
 *
 * A new connection is set up before the link is up: the server is checked, scripts are loaded, channels subscribed, then
 * the listeners of `onUsable` run. When any of it fails, the connection is given up and another one is made, after pauses
 * that grow until the link is up.
 */
export class RedisLink implements RedisCalls, SubscribingLink {
  /** What carries the commands. All but tests send theirs through this link's methods. */
  readonly client: Redis;
  readonly name: string;
  /** Of a link that is not watched, how full Redis was when the link went up. */
  readonly memory: RedisMemory;
  readonly links: readonly ServerLink[] = [this];
  readonly #options: RedisLinkOptions;
  readonly #info: ServerInfo;
  readonly #deadlineCalls: DeadlineCalls;
  readonly #state: LinkState;
  readonly #subscriptions: Subscriptions;
  readonly #usableListeners: (() => Promise<void>)[] = [];
  readonly #upListeners: (() => void)[] = [];
  readonly #downListeners: (() => void)[] = [];
  #called: ((link: string, tookMs: number, failed: boolean) => void) | undefined;
  /** The connection that is set up or in use. A failure that belongs to an earlier one changes nothing. */
  #connection: symbol | undefined;
  /** When this side last gave a connection up, monotonic ms. */
  #gaveUpAt = Number.NEGATIVE_INFINITY;
  /** Set for what runs while a connection is set up: nothing else may send before the link is up. */
  readonly #settingUp = new AsyncLocalStorage<symbol>();
  #timer: NodeJS.Timeout | undefined;
  #startEnded: (() => void) | undefined;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.name = options.name;
    this.#info = new ServerInfo(options);
    this.memory = this.#info.memory;
    this.#state = new LinkState(options.name, options.logger);
    this.client = new BoundedRedis(clientOptions(options.url, options.name, () => this.#state.nextDelayMs()));
    this.client.on("error", (err: Error) => this.#refused(err));
    this.client.on("close", () => this.#closed());
    this.client.on("ready", () => void this.#setUp());
    this.#subscriptions = new Subscriptions(this.client);
    this.#deadlineCalls = new DeadlineCalls({
      clock: this.#info.clock,
      logger: options.logger,
      run: (script, keys, args) => this.run(script, keys, args),
      gaveUpSince: (sentAt) => this.#gaveUpAt >= sentAt,
    });
  }

  /** Connected and set up. */
  get up(): boolean {
    return this.#state.down === null;
  }

  get downKind(): RedisDownKind | null {
    return this.#state.down?.kind ?? null;
  }

  /** Until when all that a node of a cluster answered had reached its replicas, monotonic ms; undefined where that is not known. */
  get receivedUntil(): number | undefined {
    return this.#info.receivedUntil;
  }

  get replicas(): Replicas | undefined {
    return this.#info.replicas;
  }

  get clockOffsetMs(): number {
    return this.#info.clockOffsetMs;
  }

  /** Runs on each new connection before the link is up, and may send. A rejection gives the connection up. */
  onUsable(listener: () => Promise<void>): void {
    this.#usableListeners.push(listener);
  }

  onConnection(listener: (link: ServerLink) => Promise<void>): void {
    this.onUsable(() => listener(this));
  }

  onUp(listener: () => void): void {
    this.#upListeners.push(listener);
  }

  onDown(listener: () => void): void {
    this.#downListeners.push(listener);
  }

  async subscribe(channel: string, onMessage: (message: string) => void): Promise<void> {
    this.#subscriptions.add(channel, onMessage);
    if (this.up) await this.#call("command", "ssubscribe", () => this.#subscriptions.subscribe(channel));
  }

  async unsubscribe(channel: string): Promise<void> {
    try {
      if (this.up) await this.#call("command", "sunsubscribe", () => this.#subscriptions.unsubscribe(channel));
    } finally {
      this.#subscriptions.remove(channel);
    }
  }

  serverOf(_key: string): ServerLink {
    return this;
  }

  /** One Redis has every key, whatever happens, and is nobody's replica. */
  onMoved(): void {}
  onPromotion(): void {}

  beside(purpose: string): RedisLink {
    return new RedisLink({ ...this.#options, name: `${this.name}-${purpose}`, watched: false });
  }

  onCall(listener: (link: string, tookMs: number, failed: boolean) => void): void {
    this.#called = listener;
  }

  /** Resolves when the link is up or stopped, or after a connect timeout: a service starts without Redis and says so in /ready. */
  async start(): Promise<void> {
    const up = new Promise<void>((resolve) => {
      this.#startEnded = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    // What this rejects with is an event of its own, too.
    this.client.connect().catch(() => {});
    if (this.#options.watched ?? true) this.#timer = setInterval(() => void this.#watch(), REDIS_LIMITS.pingIntervalMs);
    await up;
  }

  async stop(): Promise<void> {
    this.#state.end();
    clearInterval(this.#timer);
    this.#lose(new LinkDownError("refused", "stopped"));
    this.#startEnded?.();
    // A second disconnect would hold the process up for two seconds, waiting for a socket that is closed.
    if (this.client.status !== "end") this.client.disconnect();
  }

  async run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[] = []): Promise<Reply> {
    return await this.#call("script", script, () => runScript(this.client, script, keys, args));
  }

  async runByDeadline(
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply[]> {
    return await this.#deadlineCalls.run(script, keys, args);
  }

  unixTimeOf(_key: string, monotonicMs: number): number {
    return Math.floor(this.#info.clock.at(monotonicMs));
  }

  memoryOf(_key: string): RedisMemory {
    return this.memory;
  }

  async probe(name: string, ...args: readonly (string | number)[]): Promise<void> {
    await this.command(name, ...args).catch(unlessElsewhere);
  }

  async command(name: string, ...args: readonly (string | number)[]): Promise<Reply> {
    return await this.#call("command", name, () => this.client.call(name, ...args) as Promise<Reply>);
  }

  reconnect(cause: unknown): void {
    if (this.#connection === undefined) return;
    this.#gaveUpAt = performance.now();
    this.#lose(cause);
    this.client.disconnect(true);
  }

  async #call(kind: "script" | "command", name: string, send: () => Promise<Reply>): Promise<Reply> {
    if (!this.up && !this.#isSetUp()) throw unavailable(this.#state.down);
    const sentAt = performance.now();
    try {
      const reply = await send();
      this.#called?.(this.name, performance.now() - sentAt, false);
      return reply;
    } catch (err) {
      const failure = linkDown(err).kind;
      // A node of a cluster that does not have the slot is as well as one that does: whoever called it there looks elsewhere.
      this.#called?.(this.name, performance.now() - sentAt, failure !== "slots");
      // A full Redis is told once; so is what fails during the set-up, as the reason why the link is down.
      if (failure === "full") this.memory.filled();
      else if (this.up && failure !== "slots")
        this.#options.logger.warn({ reason: reasonOf(err), [kind]: name }, `redis did not carry out a ${kind}`);
      if (endsConnection(failure) && !this.#mayBeSilent(failure)) this.reconnect(err);
      throw unavailable(err);
    }
  }

  /**
   * True for a silence on a link whose owner judges silences: a server that goes on may still count its connection as a subscriber,
   * and report as published what a closed one would lose.
   */
  #mayBeSilent(failure: RedisDownKind): boolean {
    return failure === "timeout" && this.up && this.#options.watched === false;
  }

  /** True for a call that belongs to the set-up of the present connection. */
  #isSetUp(): boolean {
    return this.#connection !== undefined && this.#settingUp.getStore() === this.#connection;
  }

  async #setUp(): Promise<void> {
    // The handshake was refused in part, and the connection is being closed.
    if (!this.client.stream.writable) return;
    const connection = Symbol(this.name);
    this.#connection = connection;
    try {
      await this.#info.read(() => checkServer(this.client, this.#options.isNode ?? false));
      await loadScripts(this.client);
      await this.#subscriptions.catchUp();
      for (const listener of this.#usableListeners) await this.#settingUp.run(connection, listener);
      while (connection === this.#connection && this.#subscriptions.isBehind) await this.#subscriptions.catchUp();
    } catch (err) {
      if (connection === this.#connection) this.reconnect(err);
      return;
    }
    if (connection !== this.#connection) return;
    this.#state.goUp();
    for (const listener of this.#upListeners) listener();
    this.#startEnded?.();
  }

  /** Whether Redis answers, keeps what it holds, and has room. */
  async #watch(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined) return;
    try {
      const info = await this.#info.read(() =>
        this.client.info("server", "memory", ...(this.#options.isNode ? ["replication"] : [])),
      );
      checkPolicy(info);
      if (this.#options.isNode) await checkCoverage(this.client);
    } catch (err) {
      if (connection === this.#connection) this.reconnect(err);
    }
  }

  /** No connection, or a handshake that failed. */
  #refused(err: Error): void {
    this.#lose(err);
    // After a refused SELECT alone the client would go on, in another database than it was told.
    if (this.client.status === "connect") this.client.disconnect(true);
  }

  #closed(): void {
    if (this.#connection !== undefined) this.#lose(new LinkDownError("refused", "connection closed"));
  }

  #lose(cause: unknown): void {
    this.#connection = undefined;
    this.#state.goDown(cause);
    for (const listener of this.#downListeners) listener();
  }
}
