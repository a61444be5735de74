import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ENVELOPE_LIMITS } from "protocol/contract/limits.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { messageOf, textOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

const MINUTE = 60_000;
const SPAN = REDIS_LIMITS.guardBucketMs;
/** What two clocks may differ by, and the skew that a signer may have. */
const MARGIN = ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs;

const bench = new Bench();
let pod: Pod;

const published = async () => (await readSnapshot(pod.link, pod.window)).counters.get("published_envelopes") ?? 0;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("an envelope that was accepted", () => {
  test("is a duplicate for every pod, neither delivered nor counted again, with the present status", async () => {
    const ear = await bench.ear("pod-b");
    const other = await bench.pod({ pod: "pod-b" });
    const message = messageOf("agent://alice", "agent://bob");
    expect(await pod.accept(message)).toMatchObject({ outcome: "accepted", delivery: "not_seen" });
    await other.register("agent://bob", "c9");
    expect(await pod.accept(message)).toMatchObject({ outcome: "duplicate", delivery: "online" });
    expect(await other.accept(message)).toMatchObject({ outcome: "duplicate", delivery: "online" });
    expect(await ear.lines()).toEqual([]);
    expect(await published()).toBe(1);
  });

  test("is a duplicate within its own batch", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed("agent://bob", "pod-a c1 7", Date.now());
    const message = messageOf("agent://alice", "agent://bob");
    const outcomes = await pod.acceptAll(message, message);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate"]);
    expect(await ear.lines()).toEqual([`deliver c1 7 agent://bob - ${textOf(message)}`]);
    expect(await published()).toBe(1);
  });

  test("stays one after the window was reset", async () => {
    const message = messageOf("agent://alice", "agent://bob");
    await pod.accept(message);
    await bench.client.del(partitionKeys.window(0));
    expect(await pod.accept(message)).toMatchObject({ outcome: "duplicate" });
  });

  test.each([{ id: "another" }, { ts: Date.now() - 1 }, { key_id: "key-2" }, { to: "agent://carol" }])(
    "is another one when %j differs",
    async (change) => {
      const message = messageOf("agent://alice", "agent://bob", { ts: Date.now() });
      await pod.accept(message);
      expect(await pod.accept({ ...message, ...change })).toMatchObject({ outcome: "accepted" });
    },
  );
});

describe("the replay guard", () => {
  test("keeps a bucket of five seconds for as long as a ts of these could pass anywhere", async () => {
    expect(SPAN).toBe(5000);
    const span = Math.floor(Date.now() / SPAN) - 2;
    const bucket = partitionKeys.seen(0, span);
    const [early, late] = [span * SPAN, span * SPAN + SPAN - 1];
    await pod.accept(messageOf("agent://alice", "agent://bob", { ts: early }));
    const expiresAt = span * SPAN + SPAN + MARGIN;
    expect(await bench.client.pexpiretime(bucket)).toBe(expiresAt);
    await pod.accept(messageOf("agent://alice", "agent://bob", { ts: late }));
    expect(await bench.client.pexpiretime(bucket)).toBe(expiresAt);
    expect(await bench.client.scard(bucket)).toBe(2);
  });

  test("refuses, to the millisecond, a ts whose bucket is forgotten or whose time is too far ahead", async () => {
    const link = await ClockedLink.of(bench);
    const clocked = await bench.pod({ link });
    const from = Math.floor(Date.now() / SPAN) * SPAN;
    const message = () => messageOf("agent://alice", "agent://bob", { ts: from + 1234 });
    const outcomeAt = async (at: number) => {
      link.at = at;
      return (await clocked.accept(message())).outcome;
    };
    expect(await outcomeAt(from + SPAN + MARGIN - 1)).toBe("accepted");
    expect(await outcomeAt(from + SPAN + MARGIN)).toBe("clock_skew");
    expect(await outcomeAt(from - MARGIN)).toBe("accepted");
    expect(await outcomeAt(from - MARGIN - 1)).toBe("clock_skew");
  });

  test("refuses one envelope of a batch and takes the others", async () => {
    const old = messageOf("agent://alice", "agent://bob", { ts: Date.now() - MARGIN - 2 * MINUTE });
    const outcomes = await pod.acceptAll(
      messageOf("agent://alice", "agent://bob"),
      old,
      messageOf("agent://alice", "agent://bob"),
    );
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "clock_skew", "accepted"]);
    expect(await published()).toBe(2);
  });
});
