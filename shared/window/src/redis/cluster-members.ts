import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "relay-runtime/logging.ts";
import { ClusterInquiry } from "./cluster-inquiry.ts";
import { ClusterMember } from "./cluster-member.ts";
import { REDIS_LIMITS } from "./limits.ts";
import { LinkDownError } from "./link-down.ts";
import { LinkState } from "./link-state.ts";
import { SLOTS } from "./partitions.ts";
import type { Promotion } from "./redis-calls.ts";
import type { RedisLink } from "./redis-link.ts";
import type { NodeAddress, SlotMap } from "./slot-map.ts";

/** Characters of a node's id that tell it from the others in metrics and the log, which hold no addresses. */
const ID_SHOWN = 8;

/** How soon after the loss of a link the map is asked for. */
const LOST_LINK_MS = 100;

/** The primaries of a cluster and their slots, as far as they are known: kept up to date from `start` on. */
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
  /** By slot; empty before the first map. */
  #owners: readonly (ClusterMember | undefined)[] = [];
  #refreshing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * @param joined is told of each new link before it starts, @param moved of each map that differs from the one before, @param
   * promoted of each primary that could not be reached, or was cut off, and was replaced.
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

  /** Why nothing can be sent, as long as no map is known; null from then on. */
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
   * Asks for the map; resolves when it is known, or nobody told. Never twice at once: who asks meanwhile waits for the same.
   * @param teller is asked and nobody else: it said that it does not have a slot any more, and so knows who has.
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

  /** Until the map is asked for again: soon while a slot has no primary that takes calls, since another may take its place. */
  #pauseMs(): number {
    if (!this.#isUp) return this.#state.nextDelayMs();
    const isComplete = this.links.every(({ up }) => up) && !this.#owners.includes(undefined);
    return isComplete ? REDIS_LIMITS.slotMapMs : REDIS_LIMITS.missingSlotsMs;
  }

  /** Times are spread, so that the processes of a fleet do not ask at the same moment. */
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
    // Before any link is stopped: a primary that hands its slots over can be reached.
    for (const member of before.values()) this.#tellIfReplaced(member, former);
    for (const [key, member] of before) if (!members.has(key)) member.retire();
    if (hasMoved) this.#moved();
  }

  #tellIfReplaced(member: ClusterMember, former: readonly (ClusterMember | undefined)[]): void {
    const { silentSince } = member;
    const owners = this.#owners;
    const hasSlot = (slot: number) => former[slot] === member && owners[slot] !== undefined && owners[slot] !== member;
    const slot = former.findIndex((_, n) => hasSlot(n));
    if (slot === -1) return;
    if (silentSince === undefined) void this.#tellIfLeftBehind(member, slot, hasSlot);
    else this.#promoted({ hasSlot, lackingSince: member.lackingSince(silentSince) });
  }

  /** Of a former primary that still answers: as one that gave way, or as one that was cut off from the others, but not from here. */
  async #tellIfLeftBehind(member: ClusterMember, slot: number, hasSlot: (slot: number) => boolean): Promise<void> {
    // It answers until now: so it was cut off later than that.
    const lackingSince = member.lackingSince(performance.now() - REDIS_LIMITS.unheardMs);
    const isLeftBehind = await member
      .call(async (link) => {
        if (!(await this.#inquiry.isLeftBehind(link, slot))) return false;
        await delay(REDIS_LIMITS.handoverMs);
        return await this.#inquiry.isLeftBehind(link, slot);
      })
      .catch(() => true);
    if (isLeftBehind && !this.#isStopped) this.#promoted({ hasSlot, lackingSince });
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
      if (wasUp && this.#members.get(keyOf(address)) === member) this.#refreshWithin(LOST_LINK_MS);
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
