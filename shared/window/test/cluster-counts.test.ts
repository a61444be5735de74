import { expect, test } from "@jest/globals";
import { TestCluster } from "../../../test/support/redis-cluster.ts";
import { until } from "../../../test/support/until.ts";
import { Counters } from "../src/counters.ts";
import { CONTROL_SLOT } from "../src/redis/partitions.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { clusterBench } from "./cluster-kit.ts";
import { podOn } from "./kit.ts";

const bench = clusterBench(new TestCluster());
const { cluster } = bench;

interface Counted {
  readonly counted: number;
  /** What Redis has of it. */
  readonly written: number;
  readonly lost: number;
}

/** Counts all the time, whatever befalls the control slot. */
async function countThrough(befall: () => Promise<void>): Promise<Counted> {
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
  await befall();
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
  let atDeath = 0;
  const { counted, written, lost } = await countThrough(async () => {
    const killedAt = performance.now();
    await cluster.kill(primary);
    await cluster.untilPrimary(replica);
    atDeath = (performance.now() - killedAt) / 5;
  });
  // The replica may lack what its primary answered last.
  expect(written).toBeLessThanOrEqual(counted);
  expect(written).toBeGreaterThan(atDeath / 4);
  expect(lost).toBe(0);
});
