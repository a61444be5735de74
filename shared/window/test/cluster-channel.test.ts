import { expect, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { GuardedCluster } from "../../../test/support/guarded-cluster.ts";
import { until } from "../../../test/support/until.ts";
import { PodChannel } from "../src/pod-channel.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { clusterBench } from "./cluster-kit.ts";

const PARTITIONS = 12;
const bench = clusterBench(new GuardedCluster());

/** The channel of a pod, ready at all partitions. */
async function started(pod: string): Promise<PodOnCluster> {
  const links = await bench.started(pod, bench.cluster.urlFor("ws-connector"));
  const channel = new PodChannel({ calls: links, pod, partitions: PARTITIONS });
  bench.later(() => channel.stop());
  const heard: string[] = [];
  channel.listen({ deliver: (...[, , , , text]) => heard.push(text), superseded: () => {}, probe: () => {} });
  await channel.start();
  return new PodOnCluster(pod, links, channel, heard);
}

class PodOnCluster {
  readonly links: ClusterLinks;
  readonly channel: PodChannel;
  /** The texts of deliveries that came in. */
  readonly heard: string[];
  readonly #pod: string;

  constructor(pod: string, links: ClusterLinks, channel: PodChannel, heard: string[]) {
    this.#pod = pod;
    this.links = links;
    this.channel = channel;
    this.heard = heard;
  }

  channelOf(p: number): string {
    return partitionKeys.podChannel(p, this.#pod);
  }

  isReady(p: number): boolean {
    return this.channel.isReadyFor(AGENTS[p] as string);
  }

  /** Publishes a delivery. @returns how many heard it. */
  async publish(p: number, text: string): Promise<number> {
    return (await this.links.command("SPUBLISH", this.channelOf(p), `deliver c 1 agent://a - ${text}`)) as number;
  }

  /** Publishes a delivery in each partition, as soon as somebody hears it. */
  async publishEverywhere(word: string): Promise<string[]> {
    const texts = AGENTS.map((_, p) => `${word}-${p}`);
    await until("every partition is heard", async () => AGENTS.every((_, p) => this.isReady(p)));
    expect(await Promise.all(texts.map((text, p) => this.publish(p, text)))).toEqual(texts.map(() => 1));
    await this.channel.caughtUp();
    return texts;
  }
}

/** An agent of each partition. */
const AGENTS = Array.from({ length: PARTITIONS }, (_, p) => {
  for (let n = 0; ; n += 1) if (partitionOf(`agent://a${n}`, PARTITIONS) === p) return `agent://a${n}`;
});

test("A pod hears all its partitions, each at the primary that has it", async () => {
  const pod = await started("pod-a");
  expect(pod.channel.links).toHaveLength(3);
  const texts = await pod.publishEverywhere("first");
  expect(pod.heard.toSorted()).toEqual(texts.toSorted());
});

test("A partition that is moved is heard at its new primary, and what came before is neither lost nor heard twice", async () => {
  const pod = await started("pod-b");
  const slot = slotOf(pod.channelOf(0));
  const from = await bench.cluster.primaryOf(slot);
  const to = (await bench.primaries()).find((node) => node !== from) as typeof from;
  await pod.publish(0, "before");
  await bench.cluster.moveSlot(slot, to);
  await until("somebody hears the partition", async () => (await pod.publish(0, "")) === 1);
  const texts = await pod.publishEverywhere("after");
  expect(pod.heard.filter((text) => text !== "").toSorted()).toEqual(["before", ...texts].toSorted());
  await bench.cluster.moveSlot(slot, from);
});

test("Partitions of a primary that dies are heard at the replica that takes its place, the others all the time", async () => {
  const pod = await started("pod-c");
  const primary = await bench.cluster.primaryOf(pod.channelOf(0));
  const owners = await Promise.all(AGENTS.map((_, p) => bench.cluster.primaryOf(pod.channelOf(p))));
  const replica = await bench.cluster.replicaOf(primary);
  let losses = 0;
  const looks = setInterval(() => {
    if (owners.some((owner, p) => owner !== primary && !pod.isReady(p))) losses += 1;
  }, 5);
  await bench.cluster.kill(primary);
  await until("its partitions are not heard", () => !pod.isReady(0));
  await bench.cluster.untilPrimary(replica);
  const texts = await pod.publishEverywhere("again");
  clearInterval(looks);
  expect(losses).toBe(0);
  expect(pod.heard.toSorted()).toEqual(texts.toSorted());
});
