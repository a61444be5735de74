import { setImmediate as turn } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { fakeTimers } from "../../../test/support/fake-timers.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { messageOf } from "./envelopes.ts";
import { Bench, type Ear, type Pod } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const bench = new Bench();
let pod: Pod;
let ear: Ear;
let calls: number;

/** The register is the first call. */
async function gathering(gatherMs: number): Promise<void> {
  pod = await bench.pod({ gatherMs });
  ear = await bench.ear("pod-a");
  await pod.register(BOB);
  const { runByDeadline } = pod.link;
  jest.spyOn(pod.link, "runByDeadline").mockImplementation((...call) => {
    calls += 1;
    return runByDeadline.apply(pod.link, call);
  });
}

beforeEach(async () => {
  calls = 0;
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
    fakeTimers();
    for (const message of sent) {
      outcomes.push(pod.accept(message));
      await turn();
    }
    expect(calls).toBe(0);
    jest.advanceTimersByTime(60_000);
    jest.useRealTimers();
    expect(await Promise.all(outcomes)).toMatchObject(Array(3).fill({ outcome: "accepted", delivery: "online" }));
    expect(calls).toBe(1);
    expect(await idsHeard()).toEqual(sent.map(({ id }) => id));
  });

  test("begins each call at least so long after the one before", async () => {
    await gathering(60_000);
    fakeTimers();
    for (const [before, message] of messages(2).entries()) {
      const outcome = pod.accept(message);
      await turn();
      // The rest is more than passes by itself since the call before.
      jest.advanceTimersByTime(45_000);
      await turn();
      expect(calls).toBe(before);
      jest.advanceTimersByTime(15_000);
      await turn();
      expect(calls).toBe(before + 1);
      expect(await outcome).toMatchObject({ outcome: "accepted" });
    }
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
