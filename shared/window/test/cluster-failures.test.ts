import { describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { RedisMonitor } from "../../../test/support/redis-monitor.ts";
import { until } from "../../../test/support/until.ts";
import type { ClusterLinks } from "../src/redis/cluster-links.ts";
import { atOnce, type Counting, clusterBench, timed } from "./cluster-kit.ts";

/** A second is promised; a busy machine may take longer. */
const SOON_MS = 2000;

const bench = clusterBench(new TestCluster());
const { cluster } = bench;

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
