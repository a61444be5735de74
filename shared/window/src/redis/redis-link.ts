import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { BoundedRedis, clientOptions } from "./client.ts";
import {
  endsConnection,
  LateCallError,
  LinkDownError,
  LinkState,
  linkDown,
  reasonOf,
  unlessElsewhere,
} from "./link-state.ts";
import { SLOTS } from "./partitions.ts";
import { type RedisCalls, type ServerLink, type SubscribingLink, unavailable } from "./redis-calls.ts";
import { REDIS_LIMITS } from "./redis-limits.ts";
import { loadScripts, type Reply, runScript, type ScriptName } from "./scripts.ts";
import { checkInfo, checkPolicy, type RedisClock, type RedisMemory, type Replicas, ServerInfo } from "./server-info.ts";

/** Sharded channels of one client, across its connections. */
class Subscriptions {
  readonly #client: Redis;
  /** By channel. */
  readonly #listeners = new Map<string, (message: string) => void>();
  /** Channels that are subscribed on the present connection. */
  readonly #subscribed = new Set<string>();

  constructor(client: Redis) {
    this.#client = client;
    client.on("close", () => this.#subscribed.clear());
    client.on("smessage", (channel: string, message: string) => this.#listeners.get(channel)?.(message));
  }

  add(channel: string, listener: (message: string) => void): void {
    this.#listeners.set(channel, listener);
  }

  remove(channel: string): void {
    this.#listeners.delete(channel);
    this.#subscribed.delete(channel);
  }

  /** True while a channel is not subscribed on the present connection, such as one that was added during the set-up. */
  get isBehind(): boolean {
    return this.#subscribed.size < this.#listeners.size;
  }

  async subscribe(channel: string): Promise<Reply> {
    this.#subscribed.add(channel);
    return (await this.#client.ssubscribe(channel)) as Reply;
  }

  async unsubscribe(channel: string): Promise<Reply> {
    return (await this.#client.sunsubscribe(channel)) as Reply;
  }

  /** Subscribes to the remaining channels. Passes over a channel whose slot is on another cluster node. */
  async catchUp(): Promise<void> {
    for (const channel of this.#listeners.keys()) {
      if (!this.#subscribed.has(channel)) await this.subscribe(channel).catch(unlessElsewhere);
    }
  }
}

/** How often a call is sent that Redis came to after its deadline. */
const ATTEMPTS = 2;

interface DeadlineCallsOptions {
  readonly clock: RedisClock;
  readonly logger: Logger;
  readonly run: (script: ScriptName, keys: readonly string[], args: readonly (string | number)[]) => Promise<Reply>;
  /** True if this process gave a connection up at `sentAt` or later. @param sentAt monotonic ms. */
  readonly gaveUpSince: (sentAt: number) => boolean;
}

/**
 * Calls of scripts with a deadline by the clock of their Redis. If a caller was told `unavailable`, Redis does not
 * carry out the call later.
 */
class DeadlineCalls {
  readonly #options: DeadlineCallsOptions;

  constructor(options: DeadlineCallsOptions) {
    this.#options = options;
  }

  /**
   * A late call is sent once more: maybe only the estimate of Redis' clock was wrong.
   * @throws ServiceError `unavailable`: of the link, or after the last attempt.
   */
  async run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply[]> {
    const { clock, logger } = this.#options;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const sentAt = performance.now();
      const reply = await this.#runUntilDeadline(sentAt, script, keys, args);
      const [outcome, now] = reply;
      if (outcome !== "late") return reply;
      clock.told(Number(now), sentAt, performance.now());
    }
    logger.warn({ script }, "redis came to a script after its deadline");
    throw unavailable(new LateCallError());
  }

  /**
   * If this process gives the connection up before the answer, the call fails only at its deadline. Until then a slow
   * Redis may still carry it out.
   * @param sentAt monotonic ms.
   */
  async #runUntilDeadline(
    sentAt: number,
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply[]> {
    const { clock, run, gaveUpSince } = this.#options;
    const endsAt = sentAt + REDIS_LIMITS.commandTimeoutMs;
    try {
      return (await run(script, keys, [Math.floor(clock.at(endsAt)), ...args])) as Reply[];
    } catch (err) {
      if (gaveUpSince(sentAt)) await delay(Math.max(0, endsAt - performance.now()), undefined, { ref: false });
      throw err;
    }
  }
}

/** @returns INFO of a Redis that passed all checks. @throws LinkDownError as `checkInfo` and `checkCoverage`. */
async function checkServer(client: Redis, isNode: boolean): Promise<string> {
  const info = await client.info();
  checkInfo(info, isNode);
  if (isNode) await checkCoverage(client);
  return info;
}

/**
 * A node that considers the whole cluster failed refuses all slots. `slots`: the node alone misses primaries, and no
 * majority is left to agree. `coverage`: most nodes agree that slots are not served, or slots have no owner, and the
 * cluster requires full coverage.
 * @throws LinkDownError `slots` or `coverage`.
 */
async function checkCoverage(client: Redis): Promise<void> {
  const info = String(await client.cluster("INFO"));
  if (!/^cluster_state:fail/m.test(info)) return;
  const count = (name: string) => Number(new RegExp(`^cluster_slots_${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  if (count("pfail") > 0) throw new LinkDownError("slots", "the node does not reach most primaries of the cluster");
  if (count("fail") > 0 || count("assigned") < SLOTS) {
    throw new LinkDownError("coverage", "the cluster refuses all slots because some are not served");
  }
}

interface RedisLinkOptions {
  readonly url: string;
  readonly name: string;
  readonly logger: Logger;
  /** False if the owner of the link watches it in another way. */
  readonly watched?: boolean;
  /** True for a link to a node of a Redis Cluster. */
  readonly isNode?: boolean;
}

/**
 * One connection to Redis that never waits long. A command fails within 450 ms, a server out of reach is noticed
 * within two seconds, and nothing is sent twice by itself. The process starts and lives on without Redis.
 * A new connection is set up before the link is up. The link checks the server, loads scripts, subscribes channels and
 * runs the listeners of `onUsable`. If a step fails, the link gives the connection up and makes another one. The pauses
 * grow until the link is up.
 */
export class RedisLink implements RedisCalls, SubscribingLink {
  /** The client for the commands. Outside of this folder only tests use it directly. */
  readonly client: Redis;
  readonly name: string;
  /** For a link that is not watched: the memory when the link went up. */
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
  /** The connection that is set up or in use. A failure of an earlier connection changes nothing. */
  #connection: symbol | undefined;
  /** Monotonic ms: when this process last gave a connection up. */
  #gaveUpAt = Number.NEGATIVE_INFINITY;
  /** Set during the set-up of a connection. No other code may send before the link is up. */
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

  /** True if the connection is set up. */
  get up(): boolean {
    return this.#state.down === null;
  }

  get downKind(): RedisDownKind | null {
    return this.#state.down?.kind ?? null;
  }

  /** Monotonic ms: until then, replicas have received all that this cluster node answered. Undefined if unknown. */
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

  /** A single Redis always has every key, and is no replica. */
  onMoved(): void {}
  onPromotion(): void {}

  beside(purpose: string): RedisLink {
    return new RedisLink({ ...this.#options, name: `${this.name}-${purpose}`, watched: false });
  }

  onCall(listener: (link: string, tookMs: number, failed: boolean) => void): void {
    this.#called = listener;
  }

  /**
   * Resolves when the link is up or stopped, or after a connect timeout. A service starts without Redis and says so in
   * /ready.
   */
  async start(): Promise<void> {
    const up = new Promise<void>((resolve) => {
      this.#startEnded = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    // The client also emits this rejection as an event.
    this.client.connect().catch(() => {});
    if (this.#options.watched ?? true) this.#timer = setInterval(() => void this.#watch(), REDIS_LIMITS.pingIntervalMs);
    await up;
  }

  async stop(): Promise<void> {
    this.#state.end();
    clearInterval(this.#timer);
    this.#goDown(new LinkDownError("refused", "stopped"));
    this.#startEnded?.();
    // A second disconnect would wait two seconds for a socket that is already closed.
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
    this.#goDown(cause);
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
      // A cluster node without the slot has not failed: the caller looks for another node.
      this.#called?.(this.name, performance.now() - sentAt, failure !== "slots");
      // A full Redis is logged once. A failure during the set-up is logged once, as the reason why the link is down.
      if (failure === "full") this.memory.filled();
      else if (this.up && failure !== "slots")
        this.#options.logger.warn({ reason: reasonOf(err), [kind]: name }, `redis did not carry out a ${kind}`);
      if (endsConnection(failure) && !this.#keepsSubscriptions(failure)) this.reconnect(err);
      throw unavailable(err);
    }
  }

  /**
   * True for a timeout on a link whose owner judges whether the server is out of reach. The server may still count the
   * connection as a subscriber and report deliveries as published. A closed connection would lose them.
   */
  #keepsSubscriptions(failure: RedisDownKind): boolean {
    return failure === "timeout" && this.up && this.#options.watched === false;
  }

  /** True for a call of the set-up of the present connection. */
  #isSetUp(): boolean {
    return this.#connection !== undefined && this.#settingUp.getStore() === this.#connection;
  }

  async #setUp(): Promise<void> {
    // Redis refused a part of the handshake, and the connection is being closed.
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

  /** Checks that Redis answers, evicts no keys, and has room. */
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

  /** Handles a failed connect or handshake. */
  #refused(err: Error): void {
    this.#goDown(err);
    // After a refused SELECT the client would go on in the wrong database.
    if (this.client.status === "connect") this.client.disconnect(true);
  }

  #closed(): void {
    if (this.#connection !== undefined) this.#goDown(new LinkDownError("refused", "connection closed"));
  }

  #goDown(cause: unknown): void {
    this.#connection = undefined;
    this.#state.goDown(cause);
    for (const listener of this.#downListeners) listener();
  }
}
