import type { Logger } from "relay-runtime/logging.ts";
import { LinkDownError } from "./link-state.ts";
import { REDIS_LIMITS } from "./redis-limits.ts";

/**
 * A lower bound of the time at Redis. Redis tells its time after the command was sent and before the answer was read.
 * So the error is at most the round trip of the fastest answer, even if this process read other answers late. The bound
 * follows a clock that is set forward or back. It is never later than an answer allowed, apart from the drift until the
 * next answer. Pure. Source: docs/redis.md#deadlines.
 */
export class RedisClock {
  /** Lower bound of Unix ms at Redis minus monotonic ms here. */
  #lead = 0;

  /**
   * Takes a time that Redis told.
   * @param unixMs the time at Redis.
   * @param sentAt monotonic ms.
   * @param readAt monotonic ms.
   */
  told(unixMs: number, sentAt: number, readAt: number): void {
    const least = unixMs - readAt;
    const isSetBack = this.#lead > unixMs - sentAt;
    this.#lead = isSetBack ? least : Math.max(this.#lead, least);
  }

  /** Lower bound of Unix ms at Redis. @param now monotonic ms. */
  at(now: number): number {
    return now + this.#lead;
  }
}

/** Unix ms in an INFO with the section server. Undefined if Redis does not tell it. */
export function timeIn(info: string): number | undefined {
  const [, microseconds] = /^server_time_usec:(\d+)/m.exec(info) ?? [];
  return microseconds === undefined ? undefined : Number(microseconds) / 1000;
}

/**
 * Largest allowed distance between the clocks of primaries and services. Source: docs/operations.md#a-redis-cluster.
 */
const MOST_MS = 1000;

/**
 * Lower bound of the distance between the clocks of Redis and this process. Redis tells its time between the question
 * and the reading of the answer. So a late answer never makes a correct clock look wrong.
 */
export class ClockOffset {
  readonly #link: string;
  readonly #logger: Logger;
  #ms = 0;
  #isWrong = false;

  constructor(link: string, logger: Logger) {
    this.#link = link;
    this.#logger = logger;
  }

  /** Positive if Redis is ahead. */
  get ms(): number {
    return this.#ms;
  }

  /**
   * Logs one line for each change.
   * @param unixMs time at Redis.
   * @param asked Unix ms here.
   * @param read Unix ms here.
   */
  told(unixMs: number, asked: number, read: number): void {
    this.#ms = Math.max(0, unixMs - read) + Math.min(0, unixMs - asked);
    const isWrong = Math.abs(this.#ms) > MOST_MS;
    if (isWrong === this.#isWrong) return;
    this.#isWrong = isWrong;
    const context = { link: this.#link, offset_ms: Math.round(this.#ms) };
    if (isWrong) this.#logger.warn(context, "the clock of redis is more than a second from that of this process");
    else this.#logger.info(context, "the clock of redis is that of this process again");
  }
}

/** State of Redis' memory, as logged. */
type State = "ample" | "short" | "full";

/**
 * How full Redis is, by its link's reading once a second. While Redis is short of memory, the relay refuses what needs
 * new room. So existing agents and sessions keep their room. Source: docs/operations.md#memory.
 */
export class RedisMemory {
  readonly #logger: Logger;
  #ratio = 0;
  #state: State = "ample";

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Used memory as a share of maxmemory. 0 if Redis has no limit. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Two bounds keep the state from changing with each reading. */
  get isShort(): boolean {
    return this.#state !== "ample";
  }

  /** @param info INFO, or its section memory. */
  update(info: string): void {
    this.#ratio = ratioOf(info);
    if (!this.isShort && this.#ratio > REDIS_LIMITS.memoryShortAbove) this.#change("short");
    else if (this.isShort && this.#ratio < REDIS_LIMITS.memoryAmpleBelow) this.#change("ample");
  }

  /** Redis refused a write because its memory is full. */
  filled(): void {
    if (this.#state !== "full") this.#change("full");
  }

  /** Logs one line for each change. Refusals are counted, not logged. */
  #change(state: State): void {
    this.#state = state;
    if (state === "ample") this.#logger.info({ ratio: this.#ratio }, "redis has memory again");
    else this.#logger.warn({ ratio: this.#ratio }, state === "full" ? "redis is full" : "redis is short of memory");
  }
}

function ratioOf(info: string): number {
  const bytes = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  const most = bytes("maxmemory");
  return most === 0 ? 0 : bytes("used_memory") / most;
}

/**
 * Marks to keep while no replica acknowledges any. They cover two minutes. A replica that has heard nothing for longer
 * is not promoted.
 */
const MARKS_KEPT = 120;

/** Online replicas of a primary. */
export interface Replicas {
  readonly count: number;
  /** Lag of the replica that is furthest behind. */
  readonly lagBytes: number;
}

/**
 * Until when replicas have received all that a primary answered. Replication is asynchronous, and a lagging replica may
 * be promoted. Source: docs/reports.md#complete.
 */
export class ReplicaProgress {
  /** Oldest first. The primary's answers to calls before `at` are in its stream up to `offset`. */
  readonly #marks: { readonly at: number; readonly offset: number }[] = [];
  #receivedUntil: number | undefined;
  #replicas: Replicas | undefined;

  /** Online replicas, as of a second ago. Undefined before Redis told of them. */
  get replicas(): Replicas | undefined {
    return this.#replicas;
  }

  /** Monotonic ms. Undefined while no replica is known to have received data. */
  get receivedUntil(): number | undefined {
    return this.#receivedUntil;
  }

  /** @param info INFO with the section replication. @param sentAt monotonic ms: when INFO was sent. */
  told(info: string, sentAt: number): void {
    const offset = /^master_repl_offset:(\d+)/m.exec(info)?.[1];
    if (offset === undefined) return;
    this.#marks.push({ at: sentAt, offset: Number(offset) });
    if (this.#marks.length > MARKS_KEPT) this.#marks.shift();
    const acknowledged = acknowledgedIn(info);
    const online = acknowledged.filter((acked) => acked !== Number.NEGATIVE_INFINITY);
    this.#replicas = { count: online.length, lagBytes: Math.max(0, ...online.map((acked) => Number(offset) - acked)) };
    // Without replicas, nothing is known to be received.
    const received = acknowledged.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...acknowledged);
    while (this.#marks[0] !== undefined && this.#marks[0].offset <= received)
      this.#receivedUntil = this.#marks.shift()?.at;
  }
}

/** The acknowledged offset of each replica. A replica that is not online has nothing yet. */
function acknowledgedIn(info: string): number[] {
  const replicas = [...info.matchAll(/^slave\d+:.*\bstate=(\w+),offset=(\d+)/gm)];
  return replicas.map(([, state, offset]) => (state === "online" ? Number(offset) : Number.NEGATIVE_INFINITY));
}

/** Facts from the INFO of a Redis: memory, time and replicas. */
export class ServerInfo {
  readonly memory: RedisMemory;
  readonly clock = new RedisClock();
  readonly #clockOffset: ClockOffset;
  readonly #replicas = new ReplicaProgress();
  readonly #isNode: boolean;

  constructor({
    name,
    logger,
    isNode = false,
  }: { readonly name: string; readonly logger: Logger; readonly isNode?: boolean }) {
    this.memory = new RedisMemory(logger);
    this.#clockOffset = new ClockOffset(name, logger);
    this.#isNode = isNode;
  }

  get receivedUntil(): number | undefined {
    return this.#replicas.receivedUntil;
  }

  get replicas(): Replicas | undefined {
    return this.#replicas.replicas;
  }

  get clockOffsetMs(): number {
    return this.#clockOffset.ms;
  }

  /** @param ask sends INFO. @returns its text. */
  async read(ask: () => Promise<string>): Promise<string> {
    const [sentAt, asked] = [performance.now(), Date.now()];
    const info = await ask();
    const now = timeIn(info);
    if (now !== undefined) {
      this.clock.told(now, sentAt, performance.now());
      // Redis' time in INFO is up to a millisecond old.
      this.#clockOffset.told(now, asked, Date.now() + 1);
    }
    if (this.#isNode) this.#replicas.told(info, sentAt);
    this.memory.update(info);
    return info;
  }
}

/**
 * Checks that Redis has sharded pub/sub, takes writes, evicts no keys, and is part of a cluster only if REDIS_URL says
 * so. Source: docs/redis.md.
 * @throws LinkDownError `version`, `cluster`, `readonly` or `eviction`.
 */
export function checkInfo(info: string, isNode: boolean): void {
  const version = /^redis_version:([\d.]+)/m.exec(info)?.[1] ?? "unknown";
  if (!(Number.parseInt(version, 10) >= REDIS_LIMITS.oldestMajorVersion)) {
    throw new LinkDownError("version", `Redis ${version} is older than ${REDIS_LIMITS.oldestMajorVersion}.0`);
  }
  if (/^cluster_enabled:1\b/m.test(info) !== isNode) {
    throw new LinkDownError("cluster", isNode ? "Redis is no part of a cluster" : "Redis is part of a cluster");
  }
  if (/^role:slave\b/m.test(info)) throw new LinkDownError("readonly", "Redis is a replica");
  checkPolicy(info);
}

/**
 * An evicted key of the replay guard would let a replay through.
 * @param info INFO with at least the section memory.
 * @throws LinkDownError `eviction`.
 */
export function checkPolicy(info: string): void {
  const policy = /^maxmemory_policy:([a-z-]+)/m.exec(info)?.[1] ?? "unknown";
  if (policy !== "noeviction") throw new LinkDownError("eviction", `maxmemory-policy is ${policy}, not noeviction`);
}
