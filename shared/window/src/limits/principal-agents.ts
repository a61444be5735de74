import { CONGESTED, type Presence, presenceOf, timeOf } from "../presence/presence.ts";
import { everyPartition, partitionOf, reachedOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { holderDigestOf, type Principal } from "./principals.ts";

export interface SeenAgent {
  readonly agent: string;
  readonly presence: Presence;
}

/** The agents of one principal. */
interface PrincipalAgents {
  readonly total: number;
  /** The agents seen last, newest first, at most REDIS_LIMITS.agentsShown. */
  readonly agents: readonly SeenAgent[];
  /** Partitions out of reach. Their agents are not in `agents`. */
  readonly missing: readonly number[];
}

/** An agent that Redis counts for the principal, with its last-seen time in Unix ms. */
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
 * Reads the agents of a principal. Only one read runs at a time, and its calls run one after another. They share the
 * link with acceptance, and thousands of agents take Redis longer than an envelope may wait.
 */
export class PrincipalAgentsReader {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #offlineAfterMs: number;
  /** Settles when the last read ends, with or without a failure. */
  #before: Promise<unknown> = Promise.resolve();

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow; readonly offlineAfterMs: number }) {
    this.#link = options.link;
    this.#window = options.window;
    this.#offlineAfterMs = options.offlineAfterMs;
  }

  /**
   * Reads the agents that Redis counts for the principal, and the listed agents. Redis counts agents of a namespace or
   * issuer if they are limited.
   * @param listed ids of agents that Redis may not count. They may never have been seen.
   * @throws ServiceError `unavailable`.
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

  /** @param passesOver "1" leaves out agents that Redis counts for the principal. */
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
