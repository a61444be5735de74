import { nodeUrlsOf } from "runtime/redis-url.ts";
import { BoundedRedis } from "./bounded-redis.ts";
import { clientOptions } from "./client-options.ts";
import { REDIS_LIMITS } from "./limits.ts";
import type { RedisLink } from "./redis-link.ts";
import type { Reply } from "./scripts.ts";
import { mostTrusted, type NodeAddress, parseSlotMap, type SlotMap, type Standing, standingOf } from "./slot-map.ts";

/** How many nodes are asked, of which the one that knows most is believed. */
const ASKED = 3;

interface Word extends Standing {
  readonly map: SlotMap;
}

/** Asks the nodes of a cluster which primary has which slots. */
export class ClusterInquiry {
  readonly #name: string;
  readonly #seeds: readonly string[];
  /** Nodes that were in the last map: whoever set a cluster up long ago may have named none that is left. */
  #known: readonly string[] = [];

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
    const asked = shuffled(links).slice(0, ASKED);
    const said = await Promise.allSettled(asked.map((link) => askLink(link)));
    const words = said.flatMap((word) => (word.status === "fulfilled" ? [word.value] : []));
    const { map } = mostTrusted(words) ?? (await this.#askAnybody());
    const nodes = [...map.primaries.map(({ address }) => address), ...map.replicas];
    this.#known = nodes.map((node) => this.urlOf(node));
    return map;
  }

  /** One node after the other, on a connection of its own. */
  async #askAnybody(): Promise<Word> {
    let failure: unknown;
    for (const url of shuffled([...new Set([...this.#seeds, ...this.#known])])) {
      try {
        return await this.#askNode(url);
      } catch (err) {
        failure = err;
      }
    }
    throw failure;
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
