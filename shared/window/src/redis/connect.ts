import { setTimeout as delay } from "node:timers/promises";
import slotOf from "cluster-key-slot";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import { isClusterUrl } from "relay-runtime/addresses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { type ClusterMember, ClusterMembers } from "./cluster-members.ts";
import { placeOf } from "./keys.ts";
import { isUnserved, LinkDownError, mostTelling, reasonOf, UsableListeners } from "./link-state.ts";
import {
  isUnavailable,
  OutOfReachError,
  type Promotion,
  type RedisCalls,
  type ServerLink,
  unavailable,
} from "./redis-calls.ts";
import { REDIS_LIMITS } from "./redis-limits.ts";
import { RedisLink } from "./redis-link.ts";
import type { Reply, ScriptName } from "./scripts.ts";
import { RedisMemory } from "./server-info.ts";

type Argument = string | number;

const NOBODY = new LinkDownError("slots", "nobody has the slot");

/**
 * A link to each primary of a Redis Cluster. A call goes to the primary that has the slot of its first key. A node may
 * say that it did not carry out a call (MOVED, ASK, TRYAGAIN, CLUSTERDOWN). Then the call is sent again to the slot's
 * present primary, for up to 450 ms. No other call is ever sent twice. ASK is never followed: while a slot moves, a
 * script would find only some of its keys. Source: docs/redis.md#a-redis-cluster.
 */
export class ClusterLinks implements RedisCalls {
  readonly name: string;
  readonly #logger: Logger;
  readonly #members: ClusterMembers;
  /** Memory of a slot that no primary has. */
  readonly #noMemory: RedisMemory;
  readonly #connectionListeners: ((link: ServerLink) => Promise<void>)[] = [];
  readonly #callListeners: ((link: string, tookMs: number, failed: boolean) => void)[] = [];
  readonly #movedListeners: (() => void)[] = [];
  readonly #promotionListeners: ((promotion: Promotion) => void)[] = [];
  readonly #usableListeners = new UsableListeners(() => {
    if (this.links.every(({ up }) => up)) this.#startEnded?.();
  });
  #startEnded: (() => void) | undefined;

  constructor(options: { readonly url: string; readonly name: string; readonly logger: Logger }) {
    this.name = options.name;
    this.#logger = options.logger;
    this.#noMemory = new RedisMemory(options.logger);
    this.#members = new ClusterMembers({
      ...options,
      joined: (link) => this.#listenTo(link),
      moved: () => {
        for (const listener of this.#movedListeners) listener();
      },
      promoted: (promotion) => {
        for (const listener of this.#promotionListeners) listener(promotion);
        void this.#usableListeners.run();
      },
    });
  }

  get links(): readonly RedisLink[] {
    return this.#members.links;
  }

  get up(): boolean {
    return this.links.some(({ up }) => up);
  }

  get downKind(): RedisDownKind | null {
    if (this.up) return null;
    return this.#members.down?.kind ?? mostTelling(this.links.map(({ downKind }) => downKind)) ?? "slots";
  }

  onConnection(listener: (link: ServerLink) => Promise<void>): void {
    this.#connectionListeners.push(listener);
  }

  onUsable(listener: () => Promise<void>): void {
    this.#usableListeners.add(listener);
  }

  onCall(listener: (link: string, tookMs: number, failed: boolean) => void): void {
    this.#callListeners.push(listener);
  }

  /**
   * Resolves when all primaries are linked and the listeners of `onUsable` are done. Also resolves when the links are
   * stopped, or after a connect timeout.
   */
  async start(): Promise<void> {
    const ready = new Promise<void>((resolve) => {
      this.#startEnded = resolve;
      setTimeout(resolve, REDIS_LIMITS.connectTimeoutMs).unref();
    });
    this.#members.start();
    await ready;
  }

  async stop(): Promise<void> {
    this.#usableListeners.stop();
    await this.#members.stop();
    this.#startEnded?.();
  }

  async run(script: ScriptName, keys: readonly string[], args: readonly Argument[] = []): Promise<Reply> {
    return await this.#call(keys[0] as string, script, (link) => link.run(script, keys, args));
  }

  /** Each attempt has its deadline in the time of the server that it goes to. */
  async runByDeadline(script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<Reply[]> {
    return await this.#call(keys[0] as string, script, (link) => link.runByDeadline(script, keys, args));
  }

  async command(name: string, key: string, ...args: readonly Argument[]): Promise<Reply> {
    return await this.#call(key, name, (link) => link.command(name, key, ...args));
  }

  /**
   * For a server that was not heard yet, returns the local time. With 0, Redis would forget an agent as last seen in
   * 1970.
   */
  unixTimeOf(key: string, monotonicMs: number): number {
    const link = this.#members.ownerOf(slotOf(key))?.link;
    return link?.up ? link.unixTimeOf(key, monotonicMs) : Math.floor(performance.timeOrigin + monotonicMs);
  }

  memoryOf(key: string): RedisMemory {
    return this.#members.ownerOf(slotOf(key))?.link.memory ?? this.#noMemory;
  }

  serverOf(key: string): ServerLink | undefined {
    return this.#members.ownerOf(slotOf(key))?.link;
  }

  onMoved(listener: () => void): void {
    this.#movedListeners.push(listener);
  }

  onPromotion(listener: (promotion: Promotion) => void): void {
    this.#promotionListeners.push(listener);
  }

  reconnect(cause: unknown): void {
    for (const link of this.links) link.reconnect(cause);
  }

  async #call<T>(key: string, call: string, send: (link: RedisLink) => Promise<T>): Promise<T> {
    const slot = slotOf(key);
    const endsAt = performance.now() + REDIS_LIMITS.commandTimeoutMs;
    for (let pauseMs: number = REDIS_LIMITS.unservedPauseMs; ; pauseMs *= 2) {
      const owner = this.#members.ownerOf(slot);
      try {
        if (owner === undefined) throw unavailable(this.#members.down ?? NOBODY);
        return await owner.call(send);
      } catch (err) {
        if (!mayBeSentAgain(err, owner)) throw this.#placed(err, key, owner);
        await this.#untilServed(slot, owner, err, { endsAt, pauseMs });
        if (performance.now() < endsAt) continue;
        this.#logger.warn({ reason: reasonOf(err.cause), call }, "redis did not serve a call");
        throw this.#placed(err, key, owner);
      }
    }
  }

  /** Adds the part of the cluster that is out of reach to a failure, unless no primary is up. */
  #placed(err: unknown, key: string, owner: ClusterMember | undefined): unknown {
    const place = placeOf(key);
    if (place === undefined || !isUnavailable(err) || (owner?.link.up && !isUnserved(err))) return err;
    const areOthersUp = this.links.some((link) => link !== owner?.link && link.up);
    return areOthersUp ? new OutOfReachError(place, (err as ServiceError).cause) : err;
  }

  /**
   * Resolves when the slot has another owner, when its new owner is up, or after a pause. At the latest it resolves
   * when the call ends.
   */
  async #untilServed(
    slot: number,
    owner: ClusterMember | undefined,
    refusal: Unserved,
    { endsAt, pauseMs }: { readonly endsAt: number; readonly pauseMs: number },
  ): Promise<void> {
    if (owner?.starting !== undefined) return await atLatest(endsAt, owner.starting);
    const answer = answerOf(refusal);
    if (answer !== "ASK" && answer !== "TRYAGAIN") {
      await atLatest(endsAt, this.#members.refresh(answer === "MOVED" ? owner : undefined));
    }
    if (this.#members.ownerOf(slot) === owner) await atLatest(endsAt, delay(pauseMs));
  }

  #listenTo(link: RedisLink): void {
    for (const listener of this.#connectionListeners) link.onConnection(listener);
    link.onCall((...call) => {
      for (const listener of this.#callListeners) listener(...call);
    });
    link.onUp(() => void this.#usableListeners.run());
  }
}

type Unserved = ServiceError & { readonly cause: unknown };

/**
 * True for a call that no server carried out or will carry out: its node does not serve the slot, or is not connected
 * yet.
 */
function mayBeSentAgain(err: unknown, owner: ClusterMember | undefined): err is Unserved {
  if (!(err instanceof ServiceError)) return false;
  return isUnserved(err) || (owner?.starting !== undefined && err.cause instanceof LinkDownError);
}

/** First word of the answer of Redis. */
function answerOf({ cause }: Unserved): string {
  return reasonOf(cause).split(" ", 1)[0] as string;
}

/** Resolves with the promise, or at `endsAt`. @param endsAt monotonic ms. */
async function atLatest(endsAt: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const end = delay(Math.max(0, endsAt - performance.now()), undefined, { signal: over.signal });
  await Promise.race([promise, end]).finally(() => over.abort());
}

/** Makes a client of the Redis, or the Redis Cluster, in REDIS_URL. The caller starts it. */
export function redisAt(options: { readonly url: string; readonly name: string; readonly logger: Logger }): RedisCalls {
  return isClusterUrl(options.url) ? new ClusterLinks(options) : new RedisLink(options);
}
