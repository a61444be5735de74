import { isDeepStrictEqual } from "node:util";
import { expect, test } from "@jest/globals";
import { ServiceMetrics } from "runtime/metrics/service-metrics.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters.ts";
import { observeLinks } from "../src/observe.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { CONTROL_SLOT } from "../src/redis/partitions.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { clusterBench } from "./cluster-kit.ts";
import { podOn } from "./kit.ts";

const bench = clusterBench(new TestCluster());
const { cluster } = bench;

/** What a gateway's links to the cluster show. */
class Scraped {
  readonly links: ClusterLinks;
  readonly #metrics = new ServiceMetrics("gateway");

  constructor(links: ClusterLinks) {
    this.links = links;
    observeLinks(this.#metrics, links);
  }

  /** Whether each link is up, by its name. */
  async up(): Promise<Record<string, number>> {
    const series = (await this.#scrape()).matchAll(/^relay_redis_up\{link="([^"]+)".*\} (\d)$/gm);
    return Object.fromEntries(Array.from(series, ([, link, value]) => [link, Number(value)]));
  }

  /** The links that are down. */
  async down(): Promise<string[]> {
    const series = (await this.#scrape()).matchAll(/^relay_redis_down\{link="([^"]+)".*\} 1$/gm);
    return Array.from(series, ([, link]) => link as string);
  }

  /** Resolves when as many links are shown as the cluster has primaries, all up, and none of them or of others is down. */
  async untilOnly(primaries: number): Promise<void> {
    await until("the links of the primaries are shown, and no other", async () => {
      const [up, down] = [await this.up(), await this.down()];
      const names = this.links.links.map(({ name }) => name);
      const isUp = isDeepStrictEqual(up, Object.fromEntries(names.map((name) => [name, 1])));
      return isUp && down.length === 0 && names.length === primaries;
    });
  }

  /** The series of a metric, by the name of the link, '' where it has none. */
  async series(metric: string): Promise<Record<string, number>> {
    const series = (await this.#scrape()).matchAll(new RegExp(`^${metric}\\{(?:link="([^"]+)",)?.*\\} (\\S+)$`, "gm"));
    return Object.fromEntries(Array.from(series, ([, link = "", value]) => [link, Number(value)]));
  }

  async #scrape(): Promise<string> {
    return await this.#metrics.registry.metrics();
  }
}

test("While no node answers every link is down, and only links that there are, and before any was known the cluster", async () => {
  const scraped = new Scraped(await bench.started("gateway"));
  await scraped.untilOnly(3);
  for (const node of cluster.nodes) await cluster.pause(node).catch(() => {});
  const late = new Scraped(bench.links("late"));
  try {
    const names = scraped.links.links.map(({ name }) => name).sort();
    await until("all links are shown as down", async () => (await scraped.down()).length === names.length);
    expect(await scraped.up()).toEqual(Object.fromEntries(names.map((name) => [name, 0])));
    expect((await scraped.down()).sort()).toEqual(names);
    void late.links.start();
    expect(await late.up()).toEqual({ late: 0 });
    expect(await late.down()).toEqual(["late"]);
  } finally {
    for (const node of cluster.nodes) await cluster.resume(node).catch(() => {});
  }
  await scraped.untilOnly(3);
  await late.untilOnly(3);
});

test("A primary that left the cluster has no series", async () => {
  const scraped = new Scraped(await bench.started("gateway"));
  await scraped.untilOnly(3);
  const former = await cluster.primaryOf(0);
  const added = await cluster.addNode();
  await cluster.moveSlot(0, added);
  await scraped.untilOnly(4);
  await cluster.moveSlot(0, former);
  await cluster.removeNode(added);
  await scraped.untilOnly(3);
});

test("Each primary shows its memory, its clock and its replica", async () => {
  const scraped = new Scraped(await bench.started("gateway"));
  await scraped.untilOnly(3);
  const names = Object.keys(await scraped.up()).sort();
  const all = (value: number) => Object.fromEntries(names.map((name) => [name, value]));
  await until("a replica of each is shown", async () =>
    isDeepStrictEqual(await scraped.series("relay_redis_replicas"), all(1)),
  );
  expect(Object.keys(await scraped.series("relay_redis_memory_ratio")).sort()).toEqual(names);
  expect(Object.keys(await scraped.series("relay_redis_replica_lag_bytes")).sort()).toEqual(names);
  expect(await scraped.series("relay_redis_clock_offset_seconds")).toEqual(all(0));
  expect(await scraped.series("relay_promotions_total")).toEqual({ "": 0 });
});

interface Counted {
  readonly counted: number;
  /** What Redis has of it. */
  readonly written: number;
  readonly lost: number;
}

/** Counts all the time, whatever befalls the control slot. */
async function countThrough(befall: (counted: () => number) => Promise<void>): Promise<Counted> {
  const { link, window } = podOn(await bench.started(), { partitions: 12 });
  await window.adoptOpenWindow();
  const counters = new Counters({ link, window });
  bench.later(() => counters.stop());
  await counters.start();
  const written = async () => (await readSnapshot(link, window)).traffic.get("self_test_passed") ?? 0;
  const isMoreThan = async (count: number) => (await written().catch(() => 0)) > count;
  const already = await written();
  let counted = 0;
  const counting = setInterval(() => {
    counters.count("self_test_passed");
    counted += 1;
  }, 5);
  bench.later(() => clearInterval(counting));
  await until("it counts", () => isMoreThan(already));
  await befall(() => counted);
  clearInterval(counting);
  await until("it is served again", () => isMoreThan(0));
  // Writes what is left.
  await counters.stop();
  return { counted, written: (await written()) - already, lost: counters.lost };
}

test("A failover of the control slot that was asked for costs no count, and adds none", async () => {
  const replica = await cluster.replicaOf(await cluster.primaryOf(CONTROL_SLOT));
  const { counted, written, lost } = await countThrough(() => cluster.failOver(replica));
  expect(written).toBe(counted);
  expect(lost).toBe(0);
});

test("Moving the control slot costs no count, and adds none", async () => {
  const owner = await cluster.primaryOf(CONTROL_SLOT);
  const other = (await bench.primaries()).find((node) => node !== owner) as typeof owner;
  const { counted, written, lost } = await countThrough(() => cluster.moveSlot(CONTROL_SLOT, other));
  expect(written).toBe(counted);
  expect(lost).toBe(0);
});

test("What is counted while the control slot has no primary is written once its replica has taken over, and nothing twice", async () => {
  const primary = await cluster.primaryOf(CONTROL_SLOT);
  const replica = await cluster.replicaOf(primary);
  let meanwhile = 0;
  const { counted, written, lost } = await countThrough(async (countedSoFar) => {
    await cluster.kill(primary);
    const atDeath = countedSoFar();
    await until("something is counted", () => countedSoFar() > atDeath + 20);
    await cluster.takeOver(replica);
    meanwhile = countedSoFar() - atDeath;
  });
  // The replica may lack what its primary answered last.
  expect(written).toBeLessThanOrEqual(counted);
  expect(written).toBeGreaterThanOrEqual(meanwhile);
  expect(lost).toBe(0);
});

test("A primary that died has no series once another took its place, which has, and the promotion is counted", async () => {
  await cluster.mend();
  const scraped = new Scraped(await bench.started("gateway"));
  await scraped.untilOnly(3);
  const before = Object.keys(await scraped.up());
  const primary = await cluster.primaryOf(0);
  const replica = await cluster.replicaOf(primary);
  await cluster.kill(primary);
  await cluster.takeOver(replica);
  await until("another link is shown", async () =>
    Object.keys(await scraped.up()).some((name) => !before.includes(name)),
  );
  await scraped.untilOnly(3);
  expect(await scraped.series("relay_promotions_total")).toEqual({ "": 1 });
});
