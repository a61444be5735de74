import { describe, expect, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { Redis } from "ioredis";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { RedisMonitor } from "../../../test/support/test-redis.ts";
import { ownTime } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { ClusterMember } from "../src/redis/cluster-members.ts";
import type { ClusterLinks } from "../src/redis/connect.ts";
import { atOnce, type Counting, clusterBench, timed } from "./cluster-kit.ts";

/** A second is promised; a busy machine may take longer. */
const SOON_MS = 2000;
const bench = clusterBench(new TestCluster());
const { cluster } = bench;

const soon = async (call: Promise<unknown>) => await Promise.race([timed(call), ownTime(SOON_MS)]);

describe("a call", () => {
  test("reaches the primary that has the slot of its first key", async () => {
    const links = await bench.started();
    for (const node of await bench.primaries()) {
      const key = await bench.keyAt(node);
      await links.command("SET", key, node.port);
      expect(await node.ask(`GET ${key}`)).toContain(String(node.port));
    }
  });

  test("is found out of one node's word, a replica's too", async () => {
    const replica = cluster.nodes.at(-1) as ClusterNode;
    const links = await bench.started("test", `redis-cluster://127.0.0.1:${replica.port}`);
    for (const key of await bench.keysEverywhere()) expect(await links.command("INCR", key)).toBe(1);
  });

  test("goes where several nodes say, of which one may have been cut off", async () => {
    for (const node of cluster.nodes) await node.ask("CONFIG RESETSTAT");
    await bench.started();
    const stats = await Promise.all(cluster.nodes.map((node) => node.ask("INFO commandstats")));
    expect(stats.filter((stat) => stat.includes("cluster|slots")).length).toBeGreaterThanOrEqual(3);
  });

  test("is answered in its 450 ms when the slot was moved meanwhile", async () => {
    const links = await bench.started();
    const [from, to] = (await bench.primaries()) as [ClusterNode, ClusterNode];
    const key = await bench.keyAt(from);
    await links.command("INCR", key);
    await cluster.moveSlot(slotOf(key), to);
    expect(await timed(links.command("INCR", key))).toMatchObject({ reply: 2 });
    expect(await to.ask(`GET ${key}`)).toContain("2");
  });

  test("is answered after a failover that was asked for, and counted once", async () => {
    const links = await bench.started();
    const [primary] = (await bench.primaries()) as [ClusterNode];
    const counting = bench.counting(links, await bench.keyAt(primary));
    await until("it counts", () => counting.answered > 10);
    await cluster.failOver(await cluster.replicaOf(primary));
    const { answered } = counting;
    await until("it counts again", () => counting.answered > answered + 10);
    await counting.end();
    expect(counting.unknown).toBe(0);
    expect(await links.command("GET", counting.key)).toBe(String(counting.answered));
  });

  test("whose answer was lost is not sent again, though its link is back before its 450 ms are over", async () => {
    const links = bench.links();
    let hasFailed = false;
    links.onCall((_link, _tookMs, failed) => {
      hasFailed ||= failed;
    });
    await links.start();
    const node = await cluster.primaryOf(0);
    const key = await bench.keyAt(node);
    await cluster.pause(node);
    const call = timed(links.command("INCR", key));
    links.reconnect(new Error("given up by the test"));
    await until("its connection is closed", () => hasFailed);
    await cluster.resume(node);
    expect(await call).toMatchObject({ refused: "unknown" });
    await until("all are up", () => links.links.every(({ up }) => up));
    expect(Number(await links.command("GET", key))).toBeLessThanOrEqual(1);
  });

  test("runs a script that its node forgot", async () => {
    const links = await bench.started();
    const [node] = (await bench.primaries()) as [ClusterNode];
    await node.ask("SCRIPT FLUSH");
    const key = await bench.keyAt(node);
    await links.run("announce_gateway_key", [key], ["gateway-1", "key", 60_000]);
    expect(await links.run("read_gateway_keys", [key], [60_000])).toEqual(["gateway-1", "key"]);
  });
});

describe("a slot that is being moved", () => {
  test("refuses what is not there and does nothing of it elsewhere, and serves within two seconds of its end", async () => {
    const links = await bench.started();
    const [from, to] = (await bench.primaries()) as [ClusterNode, ClusterNode];
    const key = await bench.keyAt(from);
    const here = key.replace("counter", "here");
    await links.command("SET", here, "1");
    await cluster.beginMove(slotOf(key), to);

    expect(await soon(links.command("INCR", key))).toMatchObject({ refused: "undone" });
    expect(await links.command("GET", here)).toBe("1");
    expect(bench.log.join("")).toContain('"reason":"ASK"');
    expect(bench.log.join("")).not.toContain("127.0.0.1");

    await cluster.moveKeys(slotOf(key), from, to);
    await cluster.endMove(slotOf(key), from, to);
    const isServed = async () => (await timed(links.command("INCR", key))).refused === undefined;
    await until("the slot is served", isServed, 2000);
    expect(await links.command("GET", key)).toBe("1");
    expect(await links.command("GET", here)).toBe("1");
  });

  test("is not left behind by calls that came meanwhile: they go on by themselves", async () => {
    const links = await bench.started();
    const [from, to] = (await bench.primaries()) as [ClusterNode, ClusterNode];
    const counting = bench.counting(links, await bench.keyAt(from));
    await until("it counts", () => counting.answered > 10);
    await cluster.moveSlot(slotOf(counting.key), to);
    const { answered } = counting;
    await until("it counts again", () => counting.answered > answered + 10);
    await counting.end();
    expect(counting.unknown).toBe(0);
    expect(await to.ask(`GET ${counting.key}`)).toContain(String(counting.answered));
  });
});

test("a slot that nobody has is unavailable, within a second, while the others are served", async () => {
  const links = await bench.started();
  const keys = await bench.keysEverywhere();
  const [key, ...others] = keys as [string, ...string[]];
  const owner = await cluster.primaryOf(key);
  for (const node of cluster.nodes) await node.ask(`CLUSTER DELSLOTS ${slotOf(key)}`);
  const countings = others.map((other) => bench.counting(links, other));
  await until("the others count", () => countings.every(({ answered }) => answered > 0));
  const before = countings.map(({ answered }) => answered);
  for (let n = 0; n < 3; n += 1) {
    expect(await soon(links.command("INCR", key))).toMatchObject({ refused: "undone" });
  }
  for (const [n, counting] of countings.entries()) {
    await counting.end();
    expect(counting.answered).toBeGreaterThan(before[n] as number);
    expect(counting.outcomes).toHaveLength(counting.answered);
  }
  await owner.ask(`CLUSTER ADDSLOTS ${slotOf(key)}`, "CLUSTER BUMPEPOCH");
  await until("it is served", async () => (await timed(links.command("INCR", key))).refused === undefined);
});

test("the slot map is asked for as soon as a link is lost, not only when its time comes", async () => {
  const links = await bench.started();
  const [node, ...others] = (await bench.primaries()) as [ClusterNode, ...ClusterNode[]];
  const forget = () => Promise.all([node, ...others].map((each) => each.ask("CONFIG RESETSTAT")));
  const isAsked = async () => {
    const stats = await Promise.all([node, ...others].map((each) => each.ask("INFO commandstats")));
    return stats.some((stat) => stat.includes("cluster|slots"));
  };
  await forget();
  await until("its time comes, and so not again for half as long", isAsked);
  await forget();
  await node.ask("CLIENT KILL TYPE normal");
  await until("it is asked for", isAsked, SOON_MS);
  await until("all are up", () => links.links.every(({ up }) => up));
});

test("a node that joined is found, and one that gave its last slot away is left once its calls have settled", async () => {
  const links = await bench.started();
  const node = await cluster.addNode();
  const [from] = (await bench.primaries()) as [ClusterNode];
  const key = await bench.keyAt(from);
  expect(links.links).toHaveLength(3);
  await cluster.moveSlot(slotOf(key), node);
  expect(await timed(links.command("INCR", key))).toMatchObject({ reply: 1 });
  expect(links.links).toHaveLength(4);
  await cluster.moveSlot(slotOf(key), from);
  expect(await timed(links.command("INCR", key))).toMatchObject({ reply: 2 });
  await until("its link is gone", async () => !(await node.ask("CLIENT LIST")).includes("name=test@"));
  expect(links.links).toHaveLength(3);
  await cluster.removeNode(node);
});

test("a link that is left stops only when its calls have settled", async () => {
  const [node] = (await bench.primaries()) as [ClusterNode];
  const url = `redis://127.0.0.1:${node.port}`;
  const member = new ClusterMember({ url, name: "leaving", logger: bench.logger, isNode: true });
  bench.later(() => member.link.stop());
  member.start();
  await member.starting;
  const { promise, resolve } = Promise.withResolvers<void>();
  const call = member.call(() => promise);
  member.retire();
  expect(member.link.up).toBe(true);
  resolve();
  await call;
  expect(member.link.up).toBe(false);
});

test("since when a primary is out of reach knows who reached it before, and nobody else", async () => {
  const [node] = (await bench.primaries()) as [ClusterNode];
  const memberAt = (port: number) => {
    const url = `redis://127.0.0.1:${port}`;
    const member = new ClusterMember({ url, name: "out-of-reach", logger: bench.logger, isNode: true });
    bench.later(() => member.link.stop());
    member.start();
    return member;
  };
  const [reached, unreached] = [memberAt(node.port), memberAt(1)];
  await until("it is reached", () => reached.link.up);
  expect(reached.outOfReachSince).toBeUndefined();
  const { promise: lost, resolve } = Promise.withResolvers<number | undefined>();
  reached.link.onDown(() => resolve(reached.outOfReachSince));
  const lostAt = performance.now();
  reached.link.reconnect(new Error("given up by the test"));
  expect(await lost).toBeLessThanOrEqual(lostAt);
  expect(await lost).not.toBe(Number.NEGATIVE_INFINITY);
  await until("the other one cannot be reached", () => unreached.outOfReachSince !== undefined);
  expect(unreached.outOfReachSince).toBe(Number.NEGATIVE_INFINITY);
});

test("nothing is carried out twice, whatever befalls connections, slots and primaries, and what is unknown is little", async () => {
  const links = await bench.started();
  const countings = (await bench.keysEverywhere()).map((key) => bench.counting(links, key));
  const [first, second, third] = (await bench.primaries()) as [ClusterNode, ClusterNode, ClusterNode];
  for (let n = 0; n < 3; n += 1) {
    for (const node of [first, second, third]) await node.ask("CLIENT KILL TYPE normal", "SCRIPT FLUSH");
    const { key } = countings[n] as Counting;
    const owner = await cluster.primaryOf(key);
    await cluster.moveSlot(slotOf(key), owner === first ? second : first);
    await until("all count", async () => {
      const before = countings.map(({ answered }) => answered);
      await until("a call was answered", () => (countings[n] as Counting).answered > (before[n] as number) + 5);
      return countings.every(({ answered }, m) => answered > (before[m] as number));
    });
  }
  await cluster.failOver(await cluster.replicaOf(third));
  await Promise.all(countings.map((counting) => counting.end()));
  for (const { key, answered, unknown } of countings) {
    const counted = Number(await links.command("GET", key));
    expect(counted).toBeGreaterThanOrEqual(answered);
    expect(counted).toBeLessThanOrEqual(answered + unknown);
    expect(unknown).toBeLessThanOrEqual(6);
  }
});

/** Counts at each other primary. */
async function bystandersOf(links: ClusterLinks, primary: ClusterNode): Promise<Counting[]> {
  const others = (await bench.primaries()).filter((node) => node !== primary);
  return await Promise.all(others.map(async (node) => bench.counting(links, await bench.keyAt(node))));
}

/** A pause would have had its calls refused. @param before how many were answered when what might have paused it began. */
function neverPaused({ outcomes, answered }: Counting, before: number): void {
  expect(answered).toBeGreaterThan(before + 10);
  expect(outcomes).toHaveLength(answered);
}

/** Resolves once all of them count. @returns how many each has. */
async function counting(countings: readonly Counting[]): Promise<number[]> {
  await until("all count", () => countings.every(({ answered }) => answered > 0));
  return countings.map(({ answered }) => answered);
}

describe("when a primary", () => {
  test("hangs and its replica takes over, what it comes to when it goes on does nothing, and the others never pause", async () => {
    const links = await bench.started();
    const primary = await cluster.primaryOf(0);
    const replica = await cluster.replicaOf(primary);
    const key = await bench.keyAt(primary);
    const feedback = key.replace("counter", "feedback");
    const give = () => links.runByDeadline("add_feedback", [key, feedback], ["win_1", "total"]);
    await links.command("HSET", key, "id", "win_1");
    expect(await give()).toEqual(expect.arrayContaining(["ok"]));
    const ran: string[] = [];
    const client = new Redis({ host: "127.0.0.1", port: primary.port, replyMapping: "legacy", disconnectTimeout: 10 });
    client.on("error", () => {});
    bench.later(() => client.disconnect());
    const monitor = await RedisMonitor.open(client, ({ name, inScript }) => {
      if (inScript) ran.push(name);
    });
    bench.later(() => monitor.close());
    await monitor.caughtUp(client);
    ran.length = 0;
    const bystanders = await bystandersOf(links, primary);
    const before = await counting(bystanders);

    await cluster.pause(primary);
    expect(await timed(give())).toMatchObject({ refused: "unknown" });
    await cluster.takeOver(replica);
    await until("it is served again", async () => (await timed(give())).refused === undefined);
    await Promise.all(bystanders.map((one) => one.end()));
    for (const [n, bystander] of bystanders.entries()) neverPaused(bystander, before[n] as number);
    await cluster.resume(primary);
    await until("the former primary is a replica", async () =>
      (await primary.ask("INFO replication")).includes("role:slave"),
    );
    await monitor.caughtUp(client);
    expect(ran.filter((name) => name !== "time")).toEqual([]);
    expect(await links.command("HGET", feedback, "total")).toBe("2");
  });

  test("dies, its replica serves its slots, and the others never pause", async () => {
    const links = await bench.started();
    const primary = await cluster.primaryOf(8000);
    const replica = await cluster.replicaOf(primary);
    const lost = bench.counting(links, await bench.keyAt(primary));
    const bystanders = await bystandersOf(links, primary);
    const before = await counting(bystanders);
    await until("it counts", () => lost.answered > 10);
    const received = lost.answered;
    await cluster.untilReceived(primary, replica);
    await cluster.letTakeOver(replica);
    await cluster.kill(primary);
    const { answered } = lost;
    await cluster.untilPrimary(replica);
    await until("it counts again", () => lost.answered > answered + 10);
    await Promise.all([lost, ...bystanders].map((one) => one.end()));

    expect(lost.longestMs).toBeLessThan(SOON_MS);
    expect(lost.unknown).toBeLessThanOrEqual(1);
    for (const [n, bystander] of bystanders.entries()) neverPaused(bystander, before[n] as number);
    // A replica may lack what its primary answered last.
    const counted = Number(await links.command("GET", lost.key));
    expect(counted).toBeLessThanOrEqual(lost.answered + lost.unknown);
    expect(counted).toBeGreaterThanOrEqual(received + lost.answered - answered);
  });

  test("is lost with its replica, its slots are unavailable at once, and the others never pause", async () => {
    const links = await bench.started();
    const primary = await cluster.primaryOf(16_383);
    const key = await bench.keyAt(primary);
    const bystanders = await bystandersOf(links, primary);
    const before = await counting(bystanders);
    await cluster.kill(await cluster.replicaOf(primary));
    await cluster.kill(primary);
    await cluster.untilGivenUp(primary);
    await until("its link is down", () => links.serverOf(key)?.up === false);
    expect(await atOnce(links.command("INCR", key))).toMatchObject({ refused: "undone" });
    await Promise.all(bystanders.map((one) => one.end()));
    for (const [n, bystander] of bystanders.entries()) neverPaused(bystander, before[n] as number);
    expect(links.up).toBe(true);
    expect(links.downKind).toBeNull();
  });
});
