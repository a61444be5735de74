import { setImmediate as turn } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import type { Ear } from "./ear.ts";
import { messageOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const bench = new Bench();
let pod: Pod;
let ear: Ear;
/** When each call was sent, monotonic ms. */
let calledAt: number[];

/** The register is the first call. */
async function gathering(gatherMs: number): Promise<void> {
  pod = await bench.pod({ gatherMs });
  ear = await bench.ear("pod-a");
  await pod.register(BOB);
  const { runByDeadline } = pod.link;
  jest.spyOn(pod.link, "runByDeadline").mockImplementation((...call) => {
    calledAt.push(performance.now());
    return runByDeadline.apply(pod.link, call);
  });
}

beforeEach(async () => {
  calledAt = [];
  await bench.open();
});
afterEach(async () => {
  jest.useRealTimers();
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

const messages = (count: number) => Array.from({ length: count }, () => messageOf(ALICE, BOB));
const idsHeard = async () => (await ear.lines()).map((line) => /"id":"([^"]+)"/.exec(line)?.[1]);

describe("a lane that gathers", () => {
  test("sends what comes in one after the other in one call, in order", async () => {
    await gathering(60_000);
    const sent = messages(3);
    const outcomes = [];
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask", "Date", "performance", "hrtime"] });
    for (const message of sent) {
      outcomes.push(pod.accept(message));
      await turn();
    }
    expect(calledAt).toEqual([]);
    jest.advanceTimersByTime(60_000);
    jest.useRealTimers();
    expect(await Promise.all(outcomes)).toMatchObject(Array(3).fill({ outcome: "accepted", delivery: "online" }));
    expect(calledAt).toHaveLength(1);
    expect(await idsHeard()).toEqual(sent.map(({ id }) => id));
  });

  test("begins each call at least so long after the one before", async () => {
    await gathering(50);
    const sentAt = performance.now();
    for (const message of messages(3)) await pod.accept(message);
    const [, , third = 0] = calledAt;
    // Each of two timers may be a millisecond early.
    expect(third - sentAt).toBeGreaterThan(2 * 50 - 3);
  });

  test("waits for nobody once a call is full", async () => {
    await gathering(60_000);
    const sent = messages(REDIS_LIMITS.acceptanceBatch);
    const outcomes = [pod.accept(sent[0] as (typeof sent)[0])];
    await turn();
    outcomes.push(...sent.slice(1).map((message) => pod.accept(message)));
    expect(await Promise.all(outcomes)).toMatchObject(sent.map(() => ({ outcome: "accepted" })));
    expect(await idsHeard()).toEqual(sent.map(({ id }) => id));
  });

  test("sends at once what comes alone when no call was before it", async () => {
    const idle = await bench.pod({ gatherMs: 60_000 });
    expect(await idle.accept(messageOf(ALICE, BOB))).toMatchObject({ outcome: "accepted" });
  });
});
