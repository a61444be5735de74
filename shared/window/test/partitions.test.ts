import { describe, expect, test } from "@jest/globals";
import { SESSION_ID_PATTERN } from "protocol/contract/envelope.ts";
import { guardDigestOf, partitionOfSession, sessionIdOf } from "../src/acceptance/envelope-digest.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { WindowKeys } from "../src/redis/window-keys.ts";

const ENVELOPE = { key_id: "alice-1", id: "env-1", ts: 1_790_000_000_000, to: "agent://bob" };

describe("partitions", () => {
  test.each([
    ["agent://alice", 10_847],
    ["agent://bob", 15_732],
    ["agent://worker-7", 6_732],
    ["agent://a.b_c-d", 6_627],
    // The check value of the Redis Cluster specification: CRC16 of it is 0x31c3.
    ["123456789", 0x31c3],
  ])("are found by the slot that CLUSTER KEYSLOT gives %s: %i", (agent, slot) => {
    for (const partitions of [1, 2, 7, 12, 1024, 16_384])
      expect(partitionOf(agent, partitions)).toBe(slot % partitions);
  });

  test("take every agent in, and all of them take some", () => {
    const taken = Array.from({ length: 1000 }, (_, n) => partitionOf(`agent://a${n}`, 7));
    expect(new Set(taken)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
    expect(partitionOf("agent://anyone", 1)).toBe(0);
  });

  test("are the hash tag of each of their keys and channels", () => {
    const key = (value: unknown, ...args: unknown[]) =>
      (typeof value === "function" ? value(...args) : value) as string;
    for (const value of Object.values(partitionKeys)) expect(key(value, 3, "x")).toMatch(/^relay:\{3fd\}:[a-z]/);
    for (const value of Object.values(controlKeys)) expect(value).toMatch(/^relay:\{0\}:[a-z]/);
    const keys = new WindowKeys(1, [1, 2, 3, 4]);
    for (const value of Object.values(keys.partition(3))) expect(key(value, "x")).toMatch(/^relay:\{3fd\}:[a-z]/);
    for (const value of Object.values(keys.whole)) expect(value).toMatch(/^relay:\{0\}:[a-z]/);
    const channel: string = partitionKeys.podChannel(3, "pod-a");
    expect(channel).toBe(`${partitionKeys.podChannelPrefix(3)}pod-a`);
  });
});

describe("the digest of an envelope", () => {
  test("is made of key, id, time and target, and of nothing else", () => {
    const guard = guardDigestOf(ENVELOPE);
    expect(guard).toMatch(/^[A-Za-z0-9_-]{16}$/);
    expect(guardDigestOf({ ...ENVELOPE, payload: {} } as typeof ENVELOPE)).toBe(guard);
    const others = [{ key_id: "alice-2" }, { id: "env-2" }, { ts: ENVELOPE.ts + 1 }, { to: "agent://carol" }];
    for (const change of others) expect(guardDigestOf({ ...ENVELOPE, ...change })).not.toBe(guard);
  });

  test("keeps the parts apart", () => {
    const one = guardDigestOf({ key_id: "a", id: "1.2", ts: 3 });
    expect(guardDigestOf({ key_id: "a.1", id: "2", ts: 3 })).not.toBe(one);
    expect(guardDigestOf({ key_id: "a1", id: ".2", ts: 3 })).not.toBe(one);
  });
});

describe("the session id of an envelope", () => {
  const TEXT = `${JSON.stringify(ENVELOPE).slice(0, -1)},"sig":"${"A".repeat(43)}"}`;

  test("is one for each envelope, and carries the partition", () => {
    for (const partition of [0, 1, 31, 32, 1023]) {
      const id = sessionIdOf(TEXT, partition);
      expect(id).toMatch(SESSION_ID_PATTERN);
      expect(partitionOfSession(id, 1024)).toBe(partition);
      expect(partitionOfSession(id, partition)).toBeUndefined();
    }
    expect(sessionIdOf(TEXT, 5)).toBe(sessionIdOf(TEXT, 5));
    expect(sessionIdOf(TEXT.replace("env-1", "env-2"), 5)).not.toBe(sessionIdOf(TEXT, 5));
  });

  test("is not found by guessing the envelope: the signature is in it", () => {
    expect(sessionIdOf(TEXT.replace("AAA", "AAB"), 5)).not.toBe(sessionIdOf(TEXT, 5));
  });

  test.each(["", "ses_", "ses_00", `ses_0l${"0".repeat(24)}`, `SES_00${"0".repeat(24)}`, `ses_00${"0".repeat(24)}\n`])(
    "is not found in %j, which is no session id",
    (text) => {
      expect(partitionOfSession(text, 1024)).toBeUndefined();
    },
  );
});
