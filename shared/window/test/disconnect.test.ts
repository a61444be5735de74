import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { disconnect } from "../src/disconnect.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { resetWindow } from "../src/reset.ts";
import { Bench, type Pod, whileRedisHangs } from "./kit.ts";

const PARTITIONS = 3;
const BOB = "agent://bob";
const bench = new Bench();
let pod: Pod;
let epoch: number;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ partitions: PARTITIONS });
  epoch = (await pod.register(BOB)).epoch as number;
});
afterEach(async () => {
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

const earOf = (name = "pod-a") => bench.ear(name, partitionOf(BOB, PARTITIONS));
const tell = (agent = BOB) => disconnect(pod.link, pod.window, agent);

describe("To disconnect an agent", () => {
  test("tells its pod alone, by connection and epoch, and writes nothing itself", async () => {
    const [ear, other] = [await earOf(), await earOf("pod-b")];
    const before = await bench.routes(partitionOf(BOB, PARTITIONS));
    expect(await tell()).toBe(true);
    expect([await ear.lines(), await other.lines()]).toEqual([[`disconnect c1 ${epoch} ${BOB}`], []]);
    expect(await bench.routes(partitionOf(BOB, PARTITIONS))).toEqual(before);
  });

  test.each([
    ["no connection has", "agent://eve"],
    ["is of a pod that nobody hears", BOB],
  ])("says so where it %s", async (_, agent) => {
    expect(await tell(agent)).toBe(false);
  });

  test("follows a window that was replaced", async () => {
    const ear = await earOf();
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
    expect(await tell()).toBe(false);
    expect(await ear.lines()).toEqual([]);
  });

  test("does nothing that Redis comes to after it was told `unavailable`", async () => {
    const ear = await earOf();
    const told = await whileRedisHangs(bench, pod, () => tell().catch(({ code }) => code));
    expect([told, await ear.lines()]).toEqual(["unavailable", []]);
  });
});
