import { setTimeout as delay } from "node:timers/promises";
import { nodeUrlsOf } from "relay-runtime/addresses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { BoundedRedis, clientOptions } from "./client.ts";
import { isCutOff, LinkDownError, LinkState } from "./link-state.ts";
import {
  believing,
  isOutdated,
  mostTrusted,
  type NodeAddress,
  nodesIn,
  parseSlotMap,
  primaryOf,
  SLOTS,
  type SlotMap,
  servedSlots,
  standingOf,
  type Word,
} from "./partitions.ts";
import type { Promotion } from "./redis-calls.ts";
import { REDIS_LIMITS } from "./redis-limits.ts";
import { RedisLink } from "./redis-link.ts";
import type { Reply } from "./scripts.ts";

/**
 * One primary of a cluster, with the number of calls under way there. It is out of reach while it answers no call of
 * this process, or refuses all because it is cut off from most other primaries.
 */
export class ClusterMember {
  readonly link: RedisLink;
  /** Resolves when the link is up for the first time, or when that takes too long. */
  #starting: Promise<void> | undefined;
  #underWay = 0;
  /** Monotonic ms: as `outOfReachSince`. */
  #outOfReachSince: number | undefined;
  #wasUp = false;
  #isRetired = false;

  constructor(options: ConstructorParameters<typeof RedisLink>[0]) {
    this.link = new RedisLink(options);
    this.link.onUp(() => {
      this.#outOfReachSince = undefined;
      this.#wasUp = true;
    });
    this.link.onDown(() => {
      const forMs = this.link.downKind === "slots" ? REDIS_LIMITS.cutOffMs : REDIS_LIMITS.pingIntervalMs;
      this.#foundOutOfReach(this.#wasUp ? forMs : Number.POSITIVE_INFINITY);
    });
  }

  start(): void {
    this.#starting = this.link.start().finally(() => {
      this.#starting = undefined;
    });
  }

  /**
   * Monotonic ms: since when the server may be out of reach, so that the cluster may have replaced it unasked. Minus
   * infinity if it never answered this process, which may have started later. Undefined while it is in reach.
   */
  get outOfReachSince(): number | undefined {
    return this.#outOfReachSince;
  }

  /**
   * Since when a replacement may lack what this server answered: replicas may not have received all of it in time.
   * Minus infinity if nothing is known to be received.
   */
  lackingSince(outOfReachSince: number): number {
    return Math.min(outOfReachSince, this.link.receivedUntil ?? Number.NEGATIVE_INFINITY);
  }

  /** Pending while the link is set up for the first time. */
  get starting(): Promise<void> | undefined {
    return this.link.up ? undefined : this.#starting;
  }

  async call<T>(send: (link: RedisLink) => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      const reply = await send(this.link);
      this.#outOfReachSince = undefined;
      return reply;
    } catch (err) {
      if (isCutOff(err)) this.#foundOutOfReach(REDIS_LIMITS.cutOffMs);
      throw err;
    } finally {
      this.#underWay -= 1;
      this.#stopWhenIdle();
    }
  }

  /** Stops the link when the calls under way have settled. No further call may begin. */
  retire(): void {
    this.#isRetired = true;
    this.#stopWhenIdle();
  }

  /** @param forMs how long the server may have been out of reach, or cut off, before this process found out. */
  #foundOutOfReach(forMs: number): void {
    this.#outOfReachSince = Math.min(this.#outOfReachSince ?? Number.POSITIVE_INFINITY, performance.now() - forMs);
  }

  #stopWhenIdle(): void {
    if (this.#isRetired && this.#underWay === 0) void this.link.stop();
  }
}

/** Number of nodes to hear. The most trusted answer is believed. */
const ASKED = 3;

const CUT_OFF = new LinkDownError("slots", "no node answers but those that were cut off");

/** Asks the nodes of a cluster which primary has which slots. */
export class ClusterInquiry {
  readonly #name: string;
  readonly #seeds: readonly string[];
  #believed: Word | undefined;

  /** @param url names some of the nodes. @param name connection name in Redis. */
  constructor(url: string, name: string) {
    this.#name = name;
    this.#seeds = nodeUrlsOf(url) as string[];
  }

  /** URL of one node, with the scheme and the user of the cluster's URL. */
  urlOf({ host, port }: NodeAddress): string {
    const url = new URL(this.#seeds[0] as string);
    const user = url.username === "" && url.password === "" ? "" : `${url.username}:${url.password}@`;
    return `${url.protocol}//${user}${host.includes(":") ? `[${host}]` : host}:${port}`;
  }

  /**
   * @param links that are up.
   * @throws the failure of a node if no other node answers.
   * @throws LinkDownError `slots` if only cut-off nodes answer.
   */
  async ask(links: readonly RedisLink[]): Promise<SlotMap> {
    const { words } = await heard(shuffled(links).slice(0, ASKED).map(askLink));
    const word = this.#best(words);
    // A map without some slots may lack the nodes that have them. A process that believed it would never ask those
    // nodes again.
    const isEnough = word !== undefined && servedSlots(word.map) === SLOTS;
    return this.#believe(isEnough ? word : await this.#askOthers(words));
  }

  async #askOthers(words: readonly Word[]): Promise<Word> {
    const others = await this.#askAnybody();
    const word = this.#best([...words, ...others.words]);
    if (word === undefined) throw others.words.length === 0 ? others.failure : CUT_OFF;
    return word;
  }

  #believe(word: Word): SlotMap {
    this.#believed = believing(this.#believed, word);
    return word.map;
  }

  /**
   * Whether a former primary was cut off when another took its place. Then it answers as the primary for a while. A
   * primary that gave its slots away knows it: a majority of the other nodes knew before the relay did.
   * @throws ServiceError `unavailable`.
   */
  async wasCutOff(former: RedisLink, slot: number): Promise<boolean> {
    const { clusterEpoch, map } = await askLink(former);
    const believed = this.#believed as Word;
    return clusterEpoch < believed.clusterEpoch && primaryOf(map, slot) !== primaryOf(believed.map, slot);
  }

  #best(words: readonly Word[]): Word | undefined {
    return mostTrusted(words.filter((word) => !isOutdated(word, this.#believed)));
  }

  /**
   * Asks some nodes at once on their own connections. For each node that does not answer it asks another one. It also
   * asks the nodes of the last map: the configured nodes may all be out of reach.
   */
  async #askAnybody(): Promise<Heard> {
    const known = this.#believed === undefined ? [] : nodesIn(this.#believed.map).map((node) => this.urlOf(node));
    const waiting = shuffled([...new Set([...this.#seeds, ...known])]);
    const words: Word[] = [];
    let failure: unknown;
    while (words.length < ASKED && waiting.length > 0) {
      const asked = waiting.splice(0, ASKED - words.length);
      const said = await heard(asked.map((url) => this.#askNode(url)));
      words.push(...said.words);
      failure = said.failure ?? failure;
    }
    return { words, failure };
  }

  async #askNode(url: string): Promise<Word> {
    const { commandTimeoutMs: connectTimeout } = REDIS_LIMITS;
    const client = new BoundedRedis({
      ...clientOptions(url, this.#name, () => 0),
      connectTimeout,
      retryStrategy: null,
    });
    let refusal: unknown;
    client.on("error", (err) => {
      refusal = err;
    });
    try {
      await client.connect();
      return await askWith((command) => client.call("CLUSTER", command) as Promise<Reply>, client.options.host);
    } catch (err) {
      throw refusal ?? err;
    } finally {
      client.disconnect();
    }
  }
}

/** Answers of several nodes. */
interface Heard {
  readonly words: readonly Word[];
  /** Failure of a node that did not answer. */
  readonly failure: unknown;
}

async function heard(questions: readonly Promise<Word>[]): Promise<Heard> {
  const said = await Promise.allSettled(questions);
  const words = said.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  return { words, failure: said.find((one) => one.status === "rejected")?.reason };
}

function askLink(link: RedisLink): Promise<Word> {
  return askWith((command) => link.command("CLUSTER", command), link.client.options.host);
}

/** Asks for the standing first. So the map is as new as the standing, or newer. */
async function askWith(cluster: (command: string) => Promise<Reply>, host = ""): Promise<Word> {
  const [info, slots] = await Promise.all([cluster("INFO"), cluster("SLOTS")]);
  return { ...standingOf(String(info)), map: parseSlotMap(slots, host) };
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

/** Metrics and log hold no addresses. These first characters of a node's id tell it from the others. */
const ID_SHOWN = 8;

/** Ms from a link that goes down until the map is asked for. */
const LINK_DOWN_MS = 100;

/** The known primaries of a cluster and their slots, kept up to date from `start` on. */
export class ClusterMembers {
  readonly #name: string;
  readonly #logger: Logger;
  readonly #inquiry: ClusterInquiry;
  readonly #state: LinkState;
  readonly #joined: (link: RedisLink) => void;
  readonly #moved: () => void;
  readonly #promoted: (promotion: Promotion) => void;
  /** By id and address. */
  #members: ReadonlyMap<string, ClusterMember> = new Map();
  #links: readonly RedisLink[] = [];
  /** By slot. Empty before the first map. */
  #owners: readonly (ClusterMember | undefined)[] = [];
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * @param options.joined runs for each new link before it starts.
   * @param options.moved runs for each map that differs from the one before.
   * @param options.promoted runs for each replaced primary that was out of reach or cut off.
   */
  constructor(options: {
    readonly url: string;
    readonly name: string;
    readonly logger: Logger;
    readonly joined: (link: RedisLink) => void;
    readonly moved: () => void;
    readonly promoted: (promotion: Promotion) => void;
  }) {
    this.#name = options.name;
    this.#logger = options.logger;
    this.#inquiry = new ClusterInquiry(options.url, options.name);
    this.#state = new LinkState(options.name, options.logger);
    this.#joined = options.joined;
    this.#moved = options.moved;
    this.#promoted = options.promoted;
  }

  get links(): readonly RedisLink[] {
    return this.#links;
  }

  ownerOf(slot: number): ClusterMember | undefined {
    return this.#owners[slot];
  }

  /** Why nothing can be sent while no map is known. Null afterwards. */
  get down(): LinkDownError | null {
    return this.#owners.length > 0 ? null : this.#state.down;
  }

  start(): void {
    void this.refresh();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#state.end();
    this.#state.goDown(new LinkDownError("refused", "stopped"));
    this.#owners = [];
    await Promise.all(this.links.map((link) => link.stop()));
  }

  /**
   * Asks for the map. Resolves when the map is known, or when no node told it. Concurrent callers share one question.
   * @param teller the only member to ask. It said that it no longer has a slot, so it knows which node has it.
   */
  refresh(teller?: ClusterMember): Promise<void> {
    this.#refreshing ??= this.#refresh(teller).finally(() => {
      this.#refreshing = undefined;
      this.#refreshWithin(this.#pauseMs());
    });
    return this.#refreshing;
  }

  async #refresh(teller: ClusterMember | undefined): Promise<void> {
    try {
      const asked = teller === undefined ? this.links : [teller.link];
      this.#take(await this.#inquiry.ask(asked.filter(({ up }) => up)));
    } catch (err) {
      if (!this.#isUp) this.#state.goDown(err);
    }
  }

  get #isUp(): boolean {
    return this.links.some(({ up }) => up);
  }

  /**
   * Ms until the next question. Short while a slot has no primary that takes calls, since another primary may take it
   * over.
   */
  #pauseMs(): number {
    if (!this.#isUp) return this.#state.nextDelayMs();
    const isComplete = this.links.every(({ up }) => up) && !this.#owners.includes(undefined);
    return isComplete ? REDIS_LIMITS.slotMapMs : REDIS_LIMITS.missingSlotsMs;
  }

  /** Random times keep the processes of a fleet from asking at the same moment. */
  #refreshWithin(ms: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), ms * (0.5 + Math.random() / 2));
  }

  #take(map: SlotMap): void {
    if (this.#isStopped) return;
    const before = this.#members;
    const members = new Map<string, ClusterMember>();
    const owners = new Array<ClusterMember | undefined>(SLOTS).fill(undefined);
    for (const { address, ranges } of map.primaries) {
      const key = keyOf(address);
      const member = before.get(key) ?? this.#join(address);
      members.set(key, member);
      for (const [first, last] of ranges) owners.fill(member, first, last + 1);
    }
    this.#members = members;
    this.#links = [...members.values()].map(({ link }) => link);
    const former = this.#owners;
    const hasMoved = owners.some((owner, slot) => owner !== former[slot]);
    this.#owners = owners;
    // Runs before any link is stopped: a primary that hands its slots over can still be reached.
    for (const member of before.values()) this.#tellIfReplaced(member, former);
    for (const [key, member] of before) if (!members.has(key)) member.retire();
    if (hasMoved) this.#moved();
  }

  #tellIfReplaced(member: ClusterMember, former: readonly (ClusterMember | undefined)[]): void {
    const { outOfReachSince } = member;
    const owners = this.#owners;
    const hasSlot = (slot: number) => former[slot] === member && owners[slot] !== undefined && owners[slot] !== member;
    const slot = former.findIndex((_, n) => hasSlot(n));
    if (slot === -1) return;
    if (outOfReachSince === undefined) void this.#tellIfCutOff(member, slot, hasSlot);
    else this.#promoted({ hasSlot, lackingSince: member.lackingSince(outOfReachSince) });
  }

  /** Handles a former primary that is in reach of this process. It gave way, or it was cut off from the other nodes. */
  async #tellIfCutOff(member: ClusterMember, slot: number, hasSlot: (slot: number) => boolean): Promise<void> {
    // It has answered until now, so it was cut off later than this.
    const lackingSince = member.lackingSince(performance.now() - REDIS_LIMITS.cutOffMs);
    const wasCutOff = await member
      .call(async (link) => {
        if (!(await this.#inquiry.wasCutOff(link, slot))) return false;
        await delay(REDIS_LIMITS.handoverMs);
        return await this.#inquiry.wasCutOff(link, slot);
      })
      .catch(() => true);
    if (wasCutOff && !this.#isStopped) this.#promoted({ hasSlot, lackingSince });
  }

  #join(address: NodeAddress): ClusterMember {
    const name = `${this.#name}@${address.id.slice(0, ID_SHOWN)}`;
    const member = new ClusterMember({ url: this.#inquiry.urlOf(address), name, logger: this.#logger, isNode: true });
    const { link } = member;
    let wasUp = false;
    link.onUp(() => {
      wasUp = true;
      this.#state.goUp();
    });
    link.onDown(() => {
      if (wasUp && this.#members.get(keyOf(address)) === member) this.#refreshWithin(LINK_DOWN_MS);
      wasUp = false;
    });
    this.#joined(link);
    member.start();
    return member;
  }
}

function keyOf({ id, host, port }: NodeAddress): string {
  return `${id} ${host} ${port}`;
}
