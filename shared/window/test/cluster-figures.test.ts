import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters/counters.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { ClusterInquiry } from "../src/redis/cluster-members.ts";
import type { ClusterLinks } from "../src/redis/connect.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { CONTROL_SLOT, slotOfPartition } from "../src/redis/partitions.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { notePromotions } from "../src/window/data-loss.ts";
import { observeLinks } from "../src/window/observe.ts";
import { clusterBench, timed } from "./cluster-kit.ts";
import { type Pod, podOn } from "./kit.ts";

const PARTITIONS = 12;
const ALL = Array.from({ length: PARTITIONS }, (_, p) => p);

/** Longer than a primary that falls silent may not have been heard. */
const LAG_MS = REDIS_LIMITS.pingIntervalMs + 100;
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
  const { link, window } = podOn(await bench.started(), { partitions: PARTITIONS });
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

async function noting(name: string): Promise<Pod<ClusterLinks>> {
  const links = bench.links(name);
  const pod = podOn(links, { partitions: PARTITIONS, pod: name });
  notePromotions(links, pod.window, bench.logger);
  await links.start();
  await pod.window.adoptOpenWindow();
  return pod;
}

const read = ({ link, window }: Pod<ClusterLinks>) => readSnapshot(link, window);

const placesOf = async (pod: Pod<ClusterLinks>): Promise<string[]> =>
  [...(await read(pod)).lostSince.keys()].map(String).sort();

/** A partition that lies elsewhere than the control slot. */
async function anywhere({ window }: Pod<ClusterLinks>) {
  const control = await cluster.primaryOf(CONTROL_SLOT);
  const owners = await Promise.all(ALL.map((p) => cluster.primaryOf(slotOfPartition(p))));
  const p = owners.findIndex((owner) => owner !== control);
  return { p, key: window.current.keys.partition(p).presence, primary: owners[p] as typeof control };
}

/** Resolves when the pod calls somebody else for a slot than before. */
async function untilSeen(pod: Pod<ClusterLinks>, key: string, before: unknown): Promise<void> {
  await until("the pod knows the new primary", async () => {
    await pod.window.adoptIfChanged().catch(() => {});
    return pod.link.serverOf(key) !== before && pod.link.links.every(({ up }) => up);
  });
}

describe("What figures lack after a promotion:", () => {
  beforeAll(async () => {
    await cluster.mend();
    for (const node of await bench.primaries()) await node.ask("FLUSHALL");
  });

  test("A failover that was asked for and a slot that was moved lack nothing", async () => {
    const pod = await noting("pod-a");
    const key = pod.window.current.keys.partition(0).presence;
    const before = pod.link.serverOf(key);
    const primary = await cluster.primaryOf(key);
    await cluster.failOver(await cluster.replicaOf(primary));
    await untilSeen(pod, key, before);
    const owner = await cluster.primaryOf(key);
    const promoted = pod.link.serverOf(key);
    const other = (await bench.primaries()).find((node) => node !== primary && node !== owner) as typeof primary;
    await cluster.moveSlot(slotOfPartition(0), other);
    await untilSeen(pod, key, promoted);
    // The former primaries were asked by then, twice each, whether they know.
    await delay(REDIS_LIMITS.handoverMs + REDIS_LIMITS.commandTimeoutMs);
    expect(await placesOf(pod)).toEqual([]);
  });

  test("A promotion that nobody asked for is recorded once, of the partitions that the primary had", async () => {
    const pods = [await noting("pod-a"), await noting("pod-b")] as const;
    const primary = await cluster.primaryOf(slotOfPartition(3));
    const owners = await Promise.all(ALL.map((p) => cluster.primaryOf(slotOfPartition(p))));
    const places = ALL.filter((p) => owners[p] === primary).map(String);
    if ((await cluster.primaryOf(CONTROL_SLOT)) === primary) places.push("control");
    const replica = await cluster.replicaOf(primary);
    const killedAt = Date.now();
    bench.log.length = 0;
    await cluster.letTakeOver(replica);
    await cluster.kill(primary);
    await cluster.untilPrimary(replica);
    await until("it is recorded", async () => (await placesOf(pods[0]).catch(() => [])).length > 0);
    await until("both have the new primary", () => pods.every(({ link }) => link.links.every(({ up }) => up)));
    expect(await placesOf(pods[0])).toEqual(places.toSorted());
    const { lostSince } = await read(pods[1]);
    for (const since of lostSince.values()) expect(since).toBeLessThanOrEqual(killedAt);
    const told = bench.log.map((line) => JSON.parse(line)).filter(({ level, places }) => level === "warn" && places);
    expect(told.map(({ link }) => link).sort()).toEqual(["pod-a", "pod-b"]);
    for (const line of told) expect(line.places.map(String).sort()).toEqual(places.toSorted());
  });

  test("A promotion is recorded since its replica had received all that the primary acknowledged, where that lagged", async () => {
    await cluster.mend();
    const pod = await noting("pod-a");
    const { key, primary } = await anywhere(pod);
    const replica = await cluster.replicaOf(primary);
    await pod.link.command("HSET", controlKeys.window, "promoted", "");
    await cluster.untilReceived(primary, replica);
    await cluster.beginLag(primary, replica);
    expect(await pod.link.command("SET", `${key}:acknowledged`, 1)).toBe("OK");
    const acknowledgedAt = Date.now();
    await until("it has lagged for a while", () => Date.now() > acknowledgedAt + LAG_MS);
    await cluster.kill(primary);
    await cluster.resume(replica);
    await cluster.takeOver(replica);
    await until("it is recorded", async () => (await placesOf(pod).catch(() => [])).length > 0);
    for (const since of (await read(pod)).lostSince.values()) expect(since).toBeLessThanOrEqual(acknowledgedAt);
    expect(await replica.ask(`EXISTS ${key}:acknowledged`)).toContain(":0");
    await cluster.mend();
  });

  test("A promotion is recorded of a primary that was cut off from the others, and not from clients, since it was", async () => {
    const pod = await noting("pod-a");
    const primary = await cluster.primaryOf(CONTROL_SLOT);
    const replica = await cluster.replicaOf(primary);
    const others = (await bench.primaries()).filter((node) => node !== primary);
    const readWindow = () => timed(pod.link.command("HGET", controlKeys.window, "id"));
    await pod.link.command("HSET", controlKeys.window, "promoted", "");
    await cluster.untilReceived(primary, replica);
    const cutOffAt = Date.now();
    for (const node of others) await cluster.pause(node);
    const isCutOff = async () => (await primary.ask("CLUSTER INFO")).includes("cluster_state:fail");
    await until("it refuses everything", async () => (await isCutOff()) && (await readWindow()).refused !== undefined);
    await replica.ask("CLUSTER FAILOVER TAKEOVER");
    for (const node of others) await cluster.resume(node);
    await cluster.untilPrimary(replica);
    await until("it is recorded", async () => (await placesOf(pod).catch(() => [""])).includes("control"));
    expect((await read(pod)).lostSince.get("control")).toBeLessThanOrEqual(cutOffAt);
  });

  test("A promotion is recorded of a primary that was cut off and still acknowledges when its place is known to be another's", async () => {
    const pod = await noting("pod-a");
    const { p, key, primary } = await anywhere(pod);
    const replica = await cluster.replicaOf(primary);
    await pod.link.command("HSET", controlKeys.window, "promoted", "");
    await cluster.untilReceived(primary, replica);
    const before = pod.link.serverOf(key);
    const cutOffAt = Date.now();
    await cluster.cutOff(primary);
    await cluster.takeOver(replica);
    expect(await primary.ask(`SET ${key}:acknowledged 1`)).toContain("+OK");

    // The map is asked for when its time comes: no link goes up once the promotion is found out, which would have it recorded.
    await untilSeen(pod, key, before);
    await until("it is recorded", async () => (await placesOf(pod).catch(() => [""])).includes(String(p)));
    expect((await read(pod)).lostSince.get(p)).toBeLessThanOrEqual(cutOffAt);
    expect(await primary.ask(`SET ${key}:acknowledged 2`)).toContain("+OK");
    await cluster.mend();
  });

  test("A primary that was made to forget the others does not hide them from whoever is linked to it alone", async () => {
    const pod = await noting("pod-a");
    const { key, primary } = await anywhere(pod);
    const link = pod.link.serverOf(key) as RedisLink;
    await cluster.cutOff(primary);
    const { primaries } = await new ClusterInquiry(cluster.url, "pod-b").ask([link]);
    expect(primaries).toHaveLength(3);
    await cluster.mend();
  });

  test("While a shard is lost figures come from the others, and say which partitions are missing", async () => {
    const pod = await noting("pod-a");
    const { link, window } = pod;
    const control = await cluster.primaryOf(CONTROL_SLOT);
    const owners = await Promise.all(ALL.map((p) => cluster.primaryOf(slotOfPartition(p))));
    const lost = owners.find((owner) => owner !== control) as typeof control;
    const missing = ALL.filter((p) => owners[p] === lost);
    const replica = await cluster.replicaOf(lost).catch(() => undefined);
    if (replica !== undefined) await cluster.kill(replica);
    await cluster.kill(lost);
    await cluster.untilGivenUp(lost);
    const presenceStore = new PresenceStore({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
    await until("figures are there", async () => (await read(pod).catch(() => undefined)) !== undefined);
    expect((await read(pod)).missing).toEqual(missing);
    expect((await presenceStore.count()).missing).toEqual(missing);
  });
});
