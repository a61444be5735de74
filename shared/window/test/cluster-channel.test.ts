import { isDeepStrictEqual } from "node:util";
import { expect, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { GuardedCluster } from "../../../test/support/guarded-cluster.ts";
import { until } from "../../../test/support/until.ts";
import { PodChannel } from "../src/pod-channel.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { everyPartition, partitionOf } from "../src/redis/partitions.ts";
import { clusterBench } from "./cluster-kit.ts";
import { IGNORED } from "./kit.ts";

const PARTITIONS = 12;
const bench = clusterBench(new GuardedCluster());

/** The channel of a pod, ready at all partitions. */
async function started(pod: string): Promise<PodOnCluster> {
  const links = await bench.started(pod, bench.cluster.urlFor("ws-connector"));
  const channel = new PodChannel({ calls: links, pod, partitions: PARTITIONS });
  bench.later(() => channel.stop());
  const heard: string[] = [];
  channel.listen({
    ...IGNORED,
    deliver: (...[, , , , text]) => heard.push(text),
  });
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

  /** Publishes deliveries one after the other while something is done. @returns those that somebody heard. */
  async publishThrough(p: number, act: () => Promise<void>): Promise<string[]> {
    const heard: string[] = [];
    let isOver = false;
    const done = act().finally(() => {
      isOver = true;
    });
    for (let n = 0; !isOver; n += 1) {
      const text = `through-${n}`;
      if ((await this.publish(p, text).catch(() => 0)) === 1) heard.push(text);
    }
    await done;
    await this.channel.caughtUp();
    return heard;
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

test("Partitions that are moved are heard at their new primary: nothing is lost or heard twice, and the former one is left", async () => {
  const pod = await started("pod-b");
  const from = await bench.cluster.primaryOf(pod.channelOf(0));
  const to = (await bench.primaries()).find((node) => node !== from) as typeof from;
  const owners = await Promise.all(AGENTS.map((_, p) => bench.cluster.primaryOf(pod.channelOf(p))));
  const slots = owners.flatMap((owner, p) => (owner === from ? slotOf(pod.channelOf(p)) : []));
  const published = await pod.publishThrough(0, async () => {
    for (const slot of slots) await bench.cluster.moveSlot(slot, to);
    await until("the former primary is left", () => pod.channel.links.length === 2);
  });
  expect(pod.heard).toEqual(published);
  const texts = await pod.publishEverywhere("after");
  expect(pod.heard.slice(published.length).toSorted()).toEqual(texts.toSorted());
  for (const slot of slots) await bench.cluster.moveSlot(slot, from);
});

test("Who waits for what was published to an agent's pod waits while its partition is being left, too", async () => {
  const pod = await started("pod-d");
  const [agent, slot] = [AGENTS[0] as string, slotOf(pod.channelOf(0))];
  const from = await bench.cluster.primaryOf(slot);
  const to = (await bench.primaries()).find((node) => node !== from) as typeof from;
  const { promise: mayLeave, resolve: letLeave } = Promise.withResolvers<void>();
  const { promise: leaving, resolve: begun } = Promise.withResolvers<void>();
  for (const link of pod.channel.links) {
    const unsubscribe = link.unsubscribe.bind(link);
    link.unsubscribe = async (channel) => {
      begun();
      await mayLeave;
      await unsubscribe(channel);
    };
  }
  await bench.cluster.moveSlot(slot, to);
  await leaving;
  let isCaughtUp = false;
  const caughtUp = pod.channel.caughtUp(agent).then(() => {
    isCaughtUp = true;
  });
  const other = (await bench.primaries()).find((node) => node !== from && node !== to) as typeof from;
  for (let n = 0; n < 5; n += 1) await other.ask("PING");
  expect(isCaughtUp).toBe(false);
  letLeave();
  await caughtUp;
  await until("the partition is heard", () => pod.isReady(0));
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
  const unheard = everyPartition(PARTITIONS).filter((p) => owners[p] === primary);
  await until("its partitions are not heard, and no others", () => isDeepStrictEqual(pod.channel.unheard, unheard));
  await bench.cluster.takeOver(replica);
  const texts = await pod.publishEverywhere("again");
  clearInterval(looks);
  expect(losses).toBe(0);
  expect(pod.heard.toSorted()).toEqual(texts.toSorted());
});
