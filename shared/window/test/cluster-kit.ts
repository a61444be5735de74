import { setImmediate as turn } from "node:timers/promises";
import { afterAll, afterEach, beforeAll } from "@jest/globals";
import { createLogger } from "relay-runtime/logging.ts";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import type { TestCluster } from "../../../test/support/redis-cluster.ts";
import { watchLeaks } from "../../../test/support/until.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { ClusterLinks } from "../src/redis/connect.ts";
import { isUndone } from "../src/redis/link-state.ts";

/** What came of a call, and how long that took. */
interface Outcome {
  readonly reply?: unknown;
  readonly refused?: "undone" | "unknown";
  readonly ms: number;
}

/** A Redis Cluster of six processes, and whatever a test opens on it. */
class ClusterBench<Cluster extends TestCluster> {
  readonly cluster: Cluster;
  readonly log: string[] = [];
  readonly logger = createLogger({ service: "test", level: "debug" }, { write: (line) => void this.log.push(line) });
  readonly #closers: (() => unknown)[] = [];

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  later(close: () => unknown): void {
    this.#closers.push(close);
  }

  async clear(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  /** Links that are on their way up. */
  links(name = "test", url = this.cluster.adminUrl): ClusterLinks {
    const links = new ClusterLinks({ url, name, logger: this.logger });
    this.later(() => links.stop());
    return links;
  }

  async started(name?: string, url?: string): Promise<ClusterLinks> {
    const links = this.links(name, url);
    await links.start();
    return links;
  }

  /** A counter that is raised until the test ends at the latest. */
  counting(links: ClusterLinks, key: string): Counting {
    const counting = new Counting(links, key);
    this.later(() => counting.end());
    return counting;
  }

  /** A key of a slot that the node has, another one each time. */
  async keyAt(node: ClusterNode): Promise<string> {
    for (;;) {
      const key = `{${Math.floor(Math.random() * 1e9)}}:counter`;
      if ((await this.cluster.primaryOf(key)) === node) return key;
    }
  }

  /** The nodes that have slots, as the cluster was made with, or those that took their places. */
  async primaries(): Promise<ClusterNode[]> {
    return [...new Set(await Promise.all([0, 8000, 16_383].map((slot) => this.cluster.primaryOf(slot))))];
  }

  /** A key at each of the primaries. */
  async keysEverywhere(): Promise<string[]> {
    return await Promise.all((await this.primaries()).map((node) => this.keyAt(node)));
  }
}

/** A cluster for the tests of one file. After the last one everything has ended, and no socket and no process is left. */
export function clusterBench<Cluster extends TestCluster>(cluster: Cluster): ClusterBench<Cluster> {
  const bench = new ClusterBench(cluster);
  const noLeaks = watchLeaks();
  waitForAnswers();
  beforeAll(() => cluster.start());
  afterEach(() => bench.clear());
  afterAll(async () => {
    await cluster.stop();
    await noLeaks();
  });
  return bench;
}

/** What comes of a call. */
export async function timed(call: Promise<unknown>): Promise<Outcome> {
  const sentAt = performance.now();
  try {
    const reply = await call;
    return { reply, ms: performance.now() - sentAt };
  } catch (err) {
    if ((err as { code?: string }).code !== "unavailable") throw err;
    return { refused: isUndone(err) ? "undone" : "unknown", ms: performance.now() - sentAt };
  }
}

/** What comes of a call that waits for nothing: "late" of one that waits for a timer or for Redis. */
export async function atOnce(call: Promise<unknown>): Promise<Outcome | "late"> {
  return await Promise.race([timed(call), turn("late" as const)]);
}

/** Raises a counter again and again, one call at a time, and notes what came of each. */
export class Counting {
  readonly key: string;
  readonly outcomes: Outcome[] = [];
  readonly #links: ClusterLinks;
  #isOver = false;
  readonly #done: Promise<void>;

  constructor(links: ClusterLinks, key: string) {
    this.key = key;
    this.#links = links;
    this.#done = this.#count();
  }

  get answered(): number {
    return this.outcomes.filter(({ refused }) => refused === undefined).length;
  }

  get unknown(): number {
    return this.outcomes.filter(({ refused }) => refused === "unknown").length;
  }

  get longestMs(): number {
    return Math.max(...this.outcomes.map(({ ms }) => ms));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #count(): Promise<void> {
    while (!this.#isOver) {
      this.outcomes.push(await timed(this.#links.command("INCR", this.key)));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}
