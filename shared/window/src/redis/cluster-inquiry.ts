import { nodeUrlsOf } from "relay-runtime/redis-url.ts";
import { BoundedRedis } from "./bounded-redis.ts";
import { clientOptions } from "./client-options.ts";
import { REDIS_LIMITS } from "./limits.ts";
import { LinkDownError } from "./link-down.ts";
import { SLOTS } from "./partitions.ts";
import type { RedisLink } from "./redis-link.ts";
import type { Reply } from "./scripts.ts";
import {
  believing,
  isOutdated,
  mostTrusted,
  type NodeAddress,
  nodesIn,
  parseSlotMap,
  primaryOf,
  type SlotMap,
  servedSlots,
  standingOf,
  type Word,
} from "./slot-map.ts";

/** How many nodes are heard, of which the one that knows most is believed. */
const ASKED = 3;

const CUT_OFF = new LinkDownError("slots", "no node answers but those that were cut off");

/** Asks the nodes of a cluster which primary has which slots. */
export class ClusterInquiry {
  readonly #name: string;
  readonly #seeds: readonly string[];
  #believed: Word | undefined;

  /** @param url names some of the nodes. @param name what Redis calls the connections. */
  constructor(url: string, name: string) {
    this.#name = name;
    this.#seeds = nodeUrlsOf(url) as string[];
  }

  /** The URL of one node, with the scheme and the user of the cluster's. */
  urlOf({ host, port }: NodeAddress): string {
    const url = new URL(this.#seeds[0] as string);
    const user = url.username === "" && url.password === "" ? "" : `${url.username}:${url.password}@`;
    return `${url.protocol}//${user}${host.includes(":") ? `[${host}]` : host}:${port}`;
  }

  /** @param links that are up. @throws what the last node said that was asked, when none tells. */
  async ask(links: readonly RedisLink[]): Promise<SlotMap> {
    const { words } = await heard(shuffled(links).slice(0, ASKED).map(askLink));
    const word = this.#best(words);
    // A map that lacks slots may lack the nodes that have them: whoever believed it would ask nobody else from then on.
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
   * Whether a former primary does not know that another has its place: it was cut off when that was decided, and answers as the primary
   * for a while. One that gave its slots away knows, for a majority of the others did before the relay. @throws ServiceError `unavailable`.
   */
  async isLeftBehind(former: RedisLink, slot: number): Promise<boolean> {
    const { clusterEpoch, map } = await askLink(former);
    const believed = this.#believed as Word;
    return clusterEpoch < believed.clusterEpoch && primaryOf(map, slot) !== primaryOf(believed.map, slot);
  }

  #best(words: readonly Word[]): Word | undefined {
    return mostTrusted(words.filter((word) => !isOutdated(word, this.#believed)));
  }

  /**
   * Some nodes at once, on connections of their own, and others for those that do not answer. Those of the last map, too: whoever
   * set a cluster up long ago may have named none that is left.
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

/** What came of questions to several nodes. */
interface Heard {
  readonly words: readonly Word[];
  /** Of one that did not tell. */
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

/** The standing is asked for first: the map is as new as it says, or newer. */
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
