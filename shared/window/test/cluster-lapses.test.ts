import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { until } from "../../../test/support/until.ts";
import { notePromotions } from "../src/lapses.ts";
import { PresenceStore } from "../src/presence.ts";
import { ClusterInquiry } from "../src/redis/cluster-inquiry.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { CONTROL_SLOT, slotOfPartition } from "../src/redis/partitions.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { clusterBench, timed } from "./cluster-kit.ts";
import { type Pod, podOn } from "./kit.ts";

const PARTITIONS = 12;
const ALL = Array.from({ length: PARTITIONS }, (_, p) => p);
/** Longer than a primary that falls silent may not have been heard. */
const LAG_MS = REDIS_LIMITS.pingIntervalMs + 100;
const bench = clusterBench(new TestCluster());
const { cluster } = bench;

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
  [...(await read(pod)).lapses.keys()].map(String).sort();

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
  const { lapses } = await read(pods[1]);
  for (const since of lapses.values()) expect(since).toBeLessThanOrEqual(killedAt);
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
  for (const since of (await read(pod)).lapses.values()) expect(since).toBeLessThanOrEqual(acknowledgedAt);
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
  expect((await read(pod)).lapses.get("control")).toBeLessThanOrEqual(cutOffAt);
});

test("A promotion is recorded of a primary that was cut off and still acknowledges when its place is known to be another's", async () => {
  const pod = await noting("pod-a");
  const { p, key, primary } = await anywhere(pod);
  const replica = await cluster.replicaOf(primary);
  await pod.link.command("HSET", controlKeys.window, "promoted", "");
  await cluster.untilReceived(primary, replica);
  const before = pod.link.serverOf(key);
  const control = pod.link.serverOf(controlKeys.window) as RedisLink;
  const cutOffAt = Date.now();
  await cluster.cutOff(primary);
  await cluster.takeOver(replica);
  expect(await primary.ask(`SET ${key}:acknowledged 1`)).toContain("+OK");

  // The loss of another link has the map asked for.
  control.reconnect(new Error("given up by the test"));
  await untilSeen(pod, key, before);
  await until("it is recorded", async () => (await placesOf(pod).catch(() => [""])).includes(String(p)));
  expect((await read(pod)).lapses.get(p)).toBeLessThanOrEqual(cutOffAt);
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
