import type { Logger } from "relay-runtime/logging.ts";
import { REDIS_LIMITS } from "./limits.ts";

/**
 * The time at Redis, as far as its answers tell: it gave each after the command was sent and before it was read. So it is
 * known to within the round trip of the fastest of them, however late this process came to read the others, and follows a
 * clock that is set forward or back. Never taken for later than it was by any answer, but for what the two clocks drift
 * apart until the next one. Pure. Source: docs/redis.md#deadlines.
 */
export class RedisClock {
  /** Unix ms at Redis less monotonic ms here, at least. */
  #lead = 0;

  /**
   * Redis answered that it was so late.
   * @param unixMs what it told.
   * @param sentAt monotonic ms; so is `readAt`.
   */
  told(unixMs: number, sentAt: number, readAt: number): void {
    const least = unixMs - readAt;
    const isSetBack = this.#lead > unixMs - sentAt;
    this.#lead = isSetBack ? least : Math.max(this.#lead, least);
  }

  /** Unix ms that it is at Redis, at least. @param now monotonic ms. */
  at(now: number): number {
    return now + this.#lead;
  }
}

/** Unix ms of an INFO that has its section server; undefined where Redis does not tell. */
export function timeIn(info: string): number | undefined {
  const [, microseconds] = /^server_time_usec:(\d+)/m.exec(info) ?? [];
  return microseconds === undefined ? undefined : Number(microseconds) / 1000;
}

/** The clocks of primaries and services are to be within this. Source: docs/operations.md#a-redis-cluster. */
const MOST_MS = 1000;

/**
 * How far the clock of a Redis is from that of this process, at least: it told its time between the question and the reading of the
 * answer, so however late either came, no clock that is right is called wrong.
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

  /** Above zero where Redis is ahead. */
  get ms(): number {
    return this.#ms;
  }

  /** One line a change. @param unixMs what Redis told. @param asked Unix ms here, as is `read`. */
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

/** What is told of the memory of Redis, from one reading to the next. */
type State = "ample" | "short" | "full";

/**
 * How full Redis is, as a link reads it each second. While it is short of memory the relay refuses what needs new room,
 * so that what goes on keeps its own. Source: docs/operations.md#memory.
 */
export class RedisMemory {
  readonly #logger: Logger;
  #ratio = 0;
  #state: State = "ample";

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Used memory as a share of maxmemory; 0 where Redis has no limit. */
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

  /** Redis refused a write for want of memory. */
  filled(): void {
    if (this.#state !== "full") this.#change("full");
  }

  /** One line a change: what is refused meanwhile is counted, not logged. */
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

/** Answers that are kept while no replica acknowledges any: of two minutes, longer than a replica is promoted that heard nothing. */
const MARKS_KEPT = 120;

/** What follows a primary. */
export interface Replicas {
  readonly count: number;
  /** How far the one that has least is behind. */
  readonly lagBytes: number;
}

/**
 * Until when all that a primary answered is known to have reached its replicas: they follow without being waited for, and one that
 * lags may be promoted. Source: docs/reports.md#complete.
 */
export class ReplicaProgress {
  /** How far the primary's stream was at most when it had answered what was asked before `at`; the oldest first. */
  readonly #marks: { readonly at: number; readonly offset: number }[] = [];
  #receivedUntil: number | undefined;
  #replicas: Replicas | undefined;

  /** Those that are online, as they were a second ago; undefined before Redis told of any or none. */
  get replicas(): Replicas | undefined {
    return this.#replicas;
  }

  /** Monotonic ms; undefined while no replica is known to have received anything. */
  get receivedUntil(): number | undefined {
    return this.#receivedUntil;
  }

  /** @param info INFO with its section replication. @param sentAt when it was asked for, monotonic ms. */
  told(info: string, sentAt: number): void {
    const offset = /^master_repl_offset:(\d+)/m.exec(info)?.[1];
    if (offset === undefined) return;
    this.#marks.push({ at: sentAt, offset: Number(offset) });
    if (this.#marks.length > MARKS_KEPT) this.#marks.shift();
    const acknowledged = acknowledgedIn(info);
    const online = acknowledged.filter((acked) => acked !== Number.NEGATIVE_INFINITY);
    this.#replicas = { count: online.length, lagBytes: Math.max(0, ...online.map((acked) => Number(offset) - acked)) };
    // Of no replica nobody knows what it has.
    const received = acknowledged.length === 0 ? Number.NEGATIVE_INFINITY : Math.min(...acknowledged);
    while (this.#marks[0] !== undefined && this.#marks[0].offset <= received)
      this.#receivedUntil = this.#marks.shift()?.at;
  }
}

/** The offset that each replica acknowledged; one that is not online has nothing yet. */
function acknowledgedIn(info: string): number[] {
  const replicas = [...info.matchAll(/^slave\d+:.*\bstate=(\w+),offset=(\d+)/gm)];
  return replicas.map(([, state, offset]) => (state === "online" ? Number(offset) : Number.NEGATIVE_INFINITY));
}

/** What is known of a Redis by its INFO: how full it is, what time it has, and how far its replicas are. */
export class ServerInfo {
  readonly memory: RedisMemory;
  readonly clock = new RedisClock();
  readonly #clockOffset: ClockOffset;
  readonly #replicas = new ReplicaProgress();
  readonly #isNode: boolean;

  /** @param options.isNode true for a node of a cluster. */
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

  /** @param ask for INFO. @returns its text. */
  async read(ask: () => Promise<string>): Promise<string> {
    const [sentAt, asked] = [performance.now(), Date.now()];
    const info = await ask();
    const now = timeIn(info);
    if (now !== undefined) {
      this.clock.told(now, sentAt, performance.now());
      // What it reads is up to a millisecond old.
      this.#clockOffset.told(now, asked, Date.now() + 1);
    }
    if (this.#isNode) this.#replicas.told(info, sentAt);
    this.memory.update(info);
    return info;
  }
}
