import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { GuardedCluster } from "../../../test/support/deployed-users.ts";
import { RedisProxy } from "../../../test/support/redis-proxy.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { PodChannel } from "../src/channel/pod-channel.ts";
import type { ClusterLinks } from "../src/redis/connect.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { everyPartition, partitionOf } from "../src/redis/partitions.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { atOnce, clusterBench, timed } from "./cluster-kit.ts";
import { IGNORED } from "./kit.ts";

const PARTITIONS = 12;
const bench = clusterBench(new GuardedCluster());
const { cluster } = bench;
const everywhere = (...commands: readonly string[]) => Promise.all(cluster.nodes.map((node) => node.ask(...commands)));
const gateway = () => bench.started("gateway", cluster.urlFor("gateway"));

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
    await this.#hears(heard);
    return heard;
  }

  /** Publishes a delivery in each partition, as soon as somebody hears it. */
  async publishEverywhere(word: string): Promise<string[]> {
    const texts = AGENTS.map((_, p) => `${word}-${p}`);
    await until("every partition is heard", async () => AGENTS.every((_, p) => this.isReady(p)));
    expect(await Promise.all(texts.map((text, p) => this.publish(p, text)))).toEqual(texts.map(() => 1));
    await this.#hears(texts);
    return texts;
  }

  /** Resolves when the texts have come in, and all that was published before. */
  async #hears(texts: readonly string[]): Promise<void> {
    await until("what somebody hears comes in", () => texts.every((text) => this.heard.includes(text)));
    await this.channel.caughtUp();
  }
}

/** An agent of each partition. */
const AGENTS = Array.from({ length: PARTITIONS }, (_, p) => {
  for (let n = 0; ; n += 1) if (partitionOf(`agent://a${n}`, PARTITIONS) === p) return `agent://a${n}`;
});

describe("links of a service", () => {
  test.each(["gateway", "ws-connector", "ops-reporting", "window-reset"] as const)(
    "come up as the user %s, and do what it may on each primary",
    async (user) => {
      const links = await bench.started(user, cluster.urlFor(user));
      expect(links.links.map(({ up }) => up)).toEqual([true, true, true]);
    },
  );

  test("have names without addresses, and the log neither address nor password", async () => {
    const links = await gateway();
    for (const { name } of links.links) expect(name).toMatch(/^gateway@[0-9a-f]{8}$/);
    const node = await cluster.primaryOf(0);
    const { promise: down, resolve } = Promise.withResolvers<void>();
    for (const link of links.links) link.onDown(resolve);
    await node.ask("CLIENT KILL TYPE normal");
    await down;
    await until("all are up", () => links.links.every(({ up }) => up));
    const log = bench.log.join("");
    expect(log).toContain("gateway@");
    for (const secret of ["127.0.0.1", ...cluster.passwords]) expect(log).not.toContain(secret);
  });

  test("are each asked about permissions, wherever the slots are", async () => {
    const links = bench.links("gateway", cluster.urlFor("gateway"));
    links.onConnection((link) => link.probe("SPUBLISH", "relay:{0}:pod:-", ""));
    await links.start();
    expect(links.links.map(({ up }) => up)).toEqual([true, true, true]);
    await everywhere("ACL SETUSER gateway -spublish");
    links.reconnect(new Error("given up by the test"));
    await until("the reason is known", () => links.links.every(({ downKind }) => downKind === "noperm"));
    await everywhere("ACL SETUSER gateway +spublish");
    await until("all are up", () => links.links.every(({ up }) => up));
  });

  test("tell each call with the link that it went over, and a slot that is elsewhere is no failure", async () => {
    const links = bench.links("gateway", cluster.urlFor("gateway"));
    const calls: [string, boolean][] = [];
    links.onCall((link, _, failed) => calls.push([link, failed]));
    await links.start();
    const key = "relay:{0}:window";
    calls.length = 0;
    await Promise.all(links.links.map((link) => link.probe("HGET", key, "id")));
    const names = links.links.map(({ name }) => name);
    expect(new Set(calls.map(([link]) => link))).toEqual(new Set(names));
    expect(calls.filter(([, failed]) => failed)).toEqual([]);
    await cluster.nodes[0]?.ask("ACL SETUSER gateway -hget");
    await Promise.allSettled(links.links.map((link) => link.probe("HGET", key, "id")));
    await cluster.nodes[0]?.ask("ACL SETUSER gateway +hget");
    expect(calls.filter(([, failed]) => failed)).toHaveLength(1);
  });

  test("know the time and the memory of each server apart", async () => {
    const links = await gateway();
    const keys = await bench.keysEverywhere();
    const unheard = bench.links("gateway", cluster.urlFor("gateway"));
    for (const [one, key] of keys.flatMap((key) => [[links, key] as const, [unheard, key] as const])) {
      expect(Math.abs(one.unixTimeOf(key, performance.now()) - Date.now())).toBeLessThan(1000);
    }
    expect(new Set(keys.map((key) => links.memoryOf(key))).size).toBe(3);
  });
});

describe("what is done when Redis is usable", () => {
  test("is done before the start is over, again after each primary that came back, and again until it is done", async () => {
    const links = bench.links("gateway", cluster.urlFor("gateway"));
    let runs = 0;
    let isFailing = false;
    links.onUsable(async () => {
      runs += 1;
      if (isFailing) throw new Error("not yet");
    });
    await links.start();
    expect(runs).toBeGreaterThan(0);
    await until("all are up", () => links.links.every(({ up }) => up));
    isFailing = true;
    const before = runs;
    links.links[0]?.reconnect(new Error("given up by the test"));
    await until("it was tried three times", () => runs >= before + 3);
    expect(links.links.every(({ up }) => up)).toBe(true);
    isFailing = false;
    const failed = runs;
    await until("it is done", () => runs > failed);
  });
});

describe("links say why they are down, and refuse at once,", () => {
  test.each([
    ["auth", (): string => cluster.url.replace("://", "://gateway:wrong@")],
    ["refused", (): string => "redis-cluster://127.0.0.1:1,127.0.0.1:2"],
  ] as const)("when the reason is %s", async (kind, url) => {
    const links = bench.links("lost", url());
    void links.start();
    await until("the reason is known", () => links.downKind === kind);
    expect(links.up).toBe(false);
    expect(await atOnce(links.command("GET", "{0}"))).toMatchObject({ refused: "undone" });
  });

  test("when one Redis is there instead of a cluster, or a cluster instead of one Redis", async () => {
    const node = await cluster.primaryOf(0);
    const url = cluster.urlFor("gateway").replace(/^redis-cluster:\/\/(.*@).*$/, `redis://$1127.0.0.1:${node.port}`);
    const link = new RedisLink({ url, name: "single", logger: bench.logger });
    bench.later(() => link.stop());
    void link.start();
    await until("the reason is known", () => link.downKind === "cluster");
    const redis = new TestRedis();
    bench.later(() => redis.stop());
    await redis.start();
    const proxy = await new RedisProxy(redis.url).start();
    bench.later(() => proxy.stop());
    const links = bench.links("clustered", `redis-cluster://${proxy.host}`);
    void links.start();
    await until("the reason is known", () => links.downKind === "cluster");
  });
});

test("links may be stopped at any time, and again, and stay down", async () => {
  const links = bench.links("gateway", cluster.urlFor("gateway"));
  const started = links.start();
  await Promise.all([links.stop(), links.stop()]);
  await started;
  expect(links.up).toBe(false);
  expect(await timed(links.command("GET", "{0}"))).toMatchObject({ refused: "undone" });
  const running = await gateway();
  await running.stop();
  expect(running.up).toBe(false);
  expect(await timed(running.command("GET", "{0}"))).toMatchObject({ refused: "undone" });
});

describe("the channel of a pod", () => {
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
});

test("a cluster that refuses all slots because it lacks one is told from one that is away, and used again without restart", async () => {
  const links = await gateway();
  const read = () => timed(links.command("HGET", "relay:{0}:window", "id"));
  await everywhere("CONFIG SET cluster-require-full-coverage yes");
  for (const node of await bench.primaries()) await node.ask("CLUSTER DELSLOTS 1");
  await until("the reason is known", () => links.downKind === "coverage");
  expect(await read()).toMatchObject({ refused: "undone" });
  await everywhere("CONFIG SET cluster-require-full-coverage no");
  await until("calls are answered", async () => (await read()).refused === undefined);
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

test("a primary that has lost the majority of primaries, one after the other, says that and blames no setting", async () => {
  // Its former primary is dead, and so it has no replica.
  const survivor = await cluster.primaryOf(partitionKeys.podChannel(0, "pod-c"));
  const others = (await bench.primaries()).filter((node) => node !== survivor);
  const [first, second] = others as [ClusterNode, ClusterNode];
  const links = await gateway();
  const link = links.serverOf(await bench.keyAt(survivor));
  for (const lost of [first, second]) await cluster.kill(await cluster.replicaOf(lost));
  await cluster.kill(first);
  await cluster.untilGivenUp(first);
  await cluster.kill(second);
  await until("the reason is known", () => link?.downKind === "slots");
  const info = await survivor.ask("CLUSTER INFO");
  for (const state of ["fail", "pfail"]) expect(info).toMatch(new RegExp(`^cluster_slots_${state}:[1-9]`, "m"));
});
