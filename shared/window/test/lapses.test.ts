import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Place } from "protocol/contract/part-refusal.ts";
import { until } from "../../../test/support/until.ts";
import { recordPromotions } from "../src/lapses.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { resetWindow } from "../src/reset.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { Bench, type Pod } from "./kit.ts";

const PARTITIONS = 4;
const bench = new Bench();
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ partitions: PARTITIONS });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const lapses = async () => (await readSnapshot(pod.link, pod.window)).lapses;
const record = (...noted: [Place, number][]) =>
  recordPromotions(
    pod.link,
    pod.window,
    new Map(noted.map(([place, silentFor]) => [place, performance.now() - silentFor])),
  );
/** All keys of one slot are gone. */
async function lose(windowKey: string): Promise<void> {
  const prefix = windowKey.slice(0, -"window".length);
  await bench.client.del(...(await bench.client.keys(`${prefix}*`)));
  await pod.window.adoptOpenWindow();
}

describe("what a window may lack", () => {
  test("is nothing, of one that began empty", async () => {
    expect([...(await lapses())]).toEqual([]);
  });

  test("is known since the earliest time that anybody records, whoever comes first", async () => {
    await record([1, 3000]);
    const first = (await lapses()).get(1) as number;
    await record([1, 60_000]);
    const earlier = (await lapses()).get(1) as number;
    expect(earlier).toBeLessThan(first - 30_000);
    await record([1, 1000]);
    expect([...(await lapses())]).toEqual([[1, earlier]]);
  });

  test("is known since the window began of a primary that nobody who records it ever reached", async () => {
    const { startedAt } = pod.window.current;
    await record([1, Number.POSITIVE_INFINITY]);
    // A silence is told in whole ms, rounded up.
    await until("the window is older than the silence", () => Date.now() > startedAt + 1);
    await record([1, 0]);
    expect([...(await lapses())]).toEqual([[1, startedAt]]);
  });

  test("is known of a promotion since its primary fell silent, once, whoever else records it, and later ones", async () => {
    const before = Date.now();
    await record([1, 5000], ["control", 3000]);
    const first = await lapses();
    await Promise.all([record([1, 0], [11, 0]), record([1, 0], [11, 0])]);
    const noted = await lapses();
    expect([...noted.keys()]).toEqual([1, "control", 11]);
    expect(noted.get(1)).toBe(first.get(1));
    expect(before - (noted.get(1) as number)).toBeGreaterThan(4000);
    expect(before - (noted.get("control") as number)).toBeLessThan(4000);
  });

  test("is not recorded of a window that was replaced, but of the next", async () => {
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-2", force: false });
    await record([2, 0]);
    expect([...(await lapses()).keys()]).toEqual([2]);
  });

  test("is a partition that was lost, from when its loss was seen, and what was noted before", async () => {
    await record([3, 0]);
    await lose(partitionKeys.window(1));
    const noted = await lapses();
    expect([...noted.keys()].toSorted()).toEqual([1, 3]);
    expect(noted.get(1)).toBe(pod.window.current.startedAt);
  });

  test("is what is counted for all partitions, once the control slot was lost", async () => {
    await lose(controlKeys.window);
    expect([...(await lapses())]).toEqual([["control", pod.window.current.startedAt]]);
  });

  test("is forgotten by a reset, which keeps nothing", async () => {
    await record([3, 0]);
    await lose(partitionKeys.window(1));
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
    expect([...(await lapses())]).toEqual([]);
  });

  test("is nothing of a Redis that came back empty: all of it began anew", async () => {
    await record([3, 0]);
    await bench.client.flushall();
    await pod.window.adoptOpenWindow();
    expect([...(await lapses())]).toEqual([]);
  });
});
