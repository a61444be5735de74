import { describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { RedisMonitor } from "../../../test/support/redis-monitor.ts";
import { until } from "../../../test/support/until.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { Counting, clusterBench, timed } from "./cluster-kit.ts";

/** A second is promised; a busy machine may take longer. */
const SOON_MS = 2000;

const bench = clusterBench(new TestCluster());
const { cluster } = bench;

/** Counts at each other primary. */
async function bystandersOf(links: ClusterLinks, primary: ClusterNode): Promise<Counting[]> {
  const others = (await bench.primaries()).filter((node) => node !== primary);
  return await Promise.all(others.map(async (node) => new Counting(links, await bench.keyAt(node))));
}

/** A pause would have had its calls refused. */
function neverPaused({ outcomes, answered }: Counting): void {
  expect(answered).toBeGreaterThan(10);
  expect(outcomes).toHaveLength(answered);
}

describe("when a primary", () => {
  test("hangs and its replica takes over, what it comes to when it goes on does nothing", async () => {
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

    await cluster.pause(primary);
    expect(await timed(give())).toMatchObject({ refused: "unknown" });
    await cluster.untilPrimary(replica);
    await until("it is served again", async () => (await timed(give())).refused === undefined);
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
    const counting = new Counting(links, await bench.keyAt(primary));
    const bystanders = await bystandersOf(links, primary);
    await until("it counts", () => counting.answered > 10);
    await cluster.kill(primary);
    const { answered } = counting;
    await cluster.untilPrimary(replica);
    await until("it counts again", () => counting.answered > answered + 10);
    await Promise.all([counting, ...bystanders].map((one) => one.end()));

    expect(counting.longestMs).toBeLessThan(SOON_MS);
    expect(counting.unknown).toBeLessThanOrEqual(1);
    for (const bystander of bystanders) neverPaused(bystander);
    // A replica may lack what its primary answered last.
    const counted = Number(await links.command("GET", counting.key));
    expect(counted).toBeLessThanOrEqual(counting.answered + counting.unknown);
    expect(counted).toBeGreaterThan(counting.answered - 10);
  });

  test("is lost with its replica, its slots are unavailable at once, and the others never pause", async () => {
    const links = await bench.started();
    const primary = await cluster.primaryOf(16_383);
    const key = await bench.keyAt(primary);
    const bystanders = await bystandersOf(links, primary);
    await cluster.kill(await cluster.replicaOf(primary));
    await cluster.kill(primary);
    await cluster.untilGivenUp(primary);
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => timed(links.command("INCR", key))));
    expect(outcomes).toMatchObject(Array(5).fill({ refused: "undone" }));
    expect(Math.min(...outcomes.map(({ ms }) => ms))).toBeLessThan(REDIS_LIMITS.commandTimeoutMs / 2);
    await Promise.all(bystanders.map((one) => one.end()));
    for (const bystander of bystanders) neverPaused(bystander);
    expect(links.up).toBe(true);
    expect(links.downKind).toBeNull();
  });
});
