import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { CONGESTED, type Presence, presenceOf, timeOf } from "../presence/presence.ts";
import { partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import { everyPartition, partitionOf, reachedOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { holderDigestOf, type Principal, type RateHolder } from "./principals.ts";

export interface SeenAgent {
  readonly agent: string;
  readonly presence: Presence;
}

/** The agents of one principal. */
export interface PrincipalAgents {
  readonly total: number;
  /** Those seen last, first; as many as REDIS_LIMITS.agentsShown at most. */
  readonly agents: readonly SeenAgent[];
  /** Partitions that could not be reached, whose agents are not among them. */
  readonly missing: readonly number[];
}

/** An agent that is counted for the principal, and when it was seen last by that count: Unix ms. */
interface Counted {
  readonly agent: string;
  readonly seenAt: number;
}

interface Listing {
  readonly p: number;
  readonly total: number;
  readonly counted: readonly Counted[];
}

/**
 * Reads which agents a principal has in the window: one read at a time, each of its calls by itself, since they share the link with acceptance,
 * and thousands of agents take Redis longer than an envelope may wait.
 */
export class PrincipalAgentsReader {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #offlineAfterMs: number;
  /** Settled when the last read has ended, however it did. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow; readonly offlineAfterMs: number }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#offlineAfterMs = options.offlineAfterMs;
  }

  /**
   * Those that Redis counts for the principal, which is those of a namespace or an issuer where they are limited, and others.
   * @param listed ids of the others, whether they were ever seen or not. @throws ServiceError `unavailable`.
   */
  read(principal: Principal, listed: readonly string[]): Promise<PrincipalAgents> {
    const read = this.#before.then(() => this.#read(principal, listed));
    this.#before = read.catch(() => {});
    return read;
  }

  async #read(principal: Principal, listed: readonly string[]): Promise<PrincipalAgents> {
    const digest = holderDigestOf(principal);
    const { partitions } = this.#window;
    const { found, missing } = await reachedOf(everyPartition(partitions).map((p) => this.#list(p, digest)));
    const newest = newestOf(found.flatMap(({ counted }) => counted)).map(({ agent }) => agent);
    const agents: SeenAgent[] = [];
    let total = found.reduce((sum, part) => sum + part.total, 0);
    for (const { p } of found) {
      const isHere = (agent: string) => partitionOf(agent, partitions) === p;
      const others = await this.#presences(p, digest, listed.filter(isHere), "1");
      total += others.length;
      agents.push(...(await this.#presences(p, digest, newest.filter(isHere), "0")), ...others);
    }
    agents.sort((a, b) => lastSeenOf(b) - lastSeenOf(a));
    return { total, agents: agents.slice(0, REDIS_LIMITS.agentsShown), missing };
  }

  async #list(p: number, digest: string): Promise<Listing> {
    const [total, ...words] = (await this.#window.read(p, ({ agents }) =>
      this.#link.run("list_agents", [agents(digest)], [REDIS_LIMITS.agentsShown]),
    )) as [number, ...string[]];
    return { p, total, counted: tuples(words, 2).map(([agent = "", seenAt]) => ({ agent, seenAt: Number(seenAt) })) };
  }

  /** @param passesOver "1": those that are counted for the principal are left out. */
  async #presences(p: number, digest: string, ids: readonly string[], passesOver: "0" | "1"): Promise<SeenAgent[]> {
    const found: SeenAgent[] = [];
    for (const slice of tuples(ids, REDIS_LIMITS.routesBatch)) {
      const [now, ...words] = (await this.#window.read(p, ({ presence, online, route, agents }) =>
        this.#link.run("read_agents", [presence, online, route, agents(digest)], [passesOver, ...slice]),
      )) as string[];
      found.push(...tuples(words, 4).map((four) => this.#seenAgent(Number(now), four)));
    }
    return found;
  }

  #seenAgent(now: number, [agent = "", lastSeen = "", heldSince = "", mark]: readonly string[]): SeenAgent {
    const isCongested = mark === CONGESTED;
    return { agent, presence: presenceOf(now, timeOf(lastSeen), timeOf(heldSince), this.#offlineAfterMs, isCongested) };
  }
}

function newestOf(counted: readonly Counted[]): readonly Counted[] {
  return counted.toSorted((a, b) => b.seenAt - a.seenAt).slice(0, REDIS_LIMITS.agentsShown);
}

function tuples(words: readonly string[], size: number): (readonly string[])[] {
  return Array.from({ length: Math.ceil(words.length / size) }, (_, n) => words.slice(n * size, (n + 1) * size));
}

function lastSeenOf({ presence }: SeenAgent): number {
  return presence.lastSeen ?? 0;
}

/** A limit that pods share, for each holder by itself. */
export type SharedLimit = Extract<LimitName, "key_envelopes" | "key_bytes">;

/** Leases by which pods share the limits of principals, one call a partition. Source: docs/architecture.md#shared-rates. */
export class PrincipalShares {
  readonly #link: RedisCalls;
  readonly #partitions: number;
  readonly #pod: string;

  constructor(options: { readonly link: RedisCalls; readonly partitions: number; readonly pod: string }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#pod = options.pod;
  }

  /**
   * Begins leases of this pod, or renews them. Returns how many pods share the limit of each holder, this one included;
   * those that Redis did not answer for are left out.
   */
  async lease(limit: SharedLimit, holders: readonly RateHolder[]): Promise<Map<RateHolder, number>> {
    const digests = holders.map((holder) => ({ holder, digest: holderDigestOf(holder) }));
    const byPartition = Map.groupBy(digests, ({ digest }) => partitionOf(digest, this.#partitions));
    const calls = [...byPartition].map(async ([p, ofPartition]) => {
      const keys = ofPartition.map(({ digest }) => partitionKeys.shares(p, limit, digest));
      const pods = (await this.#link.run("lease_shares", keys, [this.#pod, REDIS_LIMITS.shareLeaseMs])) as number[];
      return ofPartition.map(({ holder }, n) => [holder, pods[n] as number] as const);
    });
    const answers = await Promise.allSettled(calls);
    return new Map(answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])));
  }
}
