import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { partitionKeys } from "../src/redis/keys.ts";
import { resetWindow } from "../src/reset.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { messageOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const PARTITIONS = 2;
const bench = new Bench();
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ partitions: PARTITIONS });
  for (let n = 0; n < 8; n += 1) await pod.accept(messageOf("agent://alice", `agent://a${n}`));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await bench.clear();
});
afterAll(() => bench.redis.stop());

/** Resets the window so many times between the read of partition 0 and that of the other one. */
async function resetBetweenReads(times: number): Promise<void> {
  const other = await bench.link();
  const { link } = pod;
  const run = link.run.bind(link);
  let read = Promise.resolve();
  let resets = 0;
  jest.spyOn(link, "run").mockImplementation(async (script, keys, args) => {
    if (script !== "snapshot") return await run(script, keys, args);
    if (keys[0] !== partitionKeys.window(0)) {
      await read;
      return await run(script, keys, args);
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    read = promise;
    const reply = await run(script, keys, args);
    resets += 1;
    if (resets <= times) await resetWindow(other, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
    resolve();
    return reply;
  });
}

describe("a snapshot", () => {
  test("adds up what all partitions counted", async () => {
    const { counters, windowId } = await readSnapshot(pod.link, pod.window);
    expect(counters.get("published_envelopes")).toBe(8);
    expect(windowId).toBe(pod.window.current.id);
  });

  test("is of one window: when a reset comes between its reads, it is read again", async () => {
    await resetBetweenReads(1);
    const { counters, windowId } = await readSnapshot(pod.link, pod.window);
    expect(counters.get("published_envelopes")).toBeUndefined();
    expect(windowId).toBe(await bench.client.hget(partitionKeys.window(1), "id"));
  });

  test("is unavailable rather than mixed when that happens again", async () => {
    await resetBetweenReads(Number.POSITIVE_INFINITY);
    await expect(readSnapshot(pod.link, pod.window)).rejects.toMatchObject({ code: "unavailable" });
  });
});
