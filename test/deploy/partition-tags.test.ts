import { describe, expect, test } from "@jest/globals";
import { settingsReader } from "relay-runtime/settings.ts";
import { PARTITION_TAGS } from "relay-window/redis/keys.ts";
import { partitionOf, SLOTS, slotOfPartition } from "relay-window/redis/partitions.ts";
import { primariesOf } from "../../deploy/redis/partition-plan.ts";

/** What the fullest primary has of the slots of agents, as a multiple of its share. */
function worstShare(partitions: number, primaries: number): number {
  const ofPartition = Array.from({ length: partitions }, (_, p) =>
    Array.from({ length: SLOTS }, (_, slot) => slot % partitions).reduce((n, each) => n + (each === p ? 1 : 0), 0),
  );
  const held = primariesOf(partitions, primaries).map(({ partitions: own }) =>
    own.reduce((sum, p) => sum + (ofPartition[p] as number), 0),
  );
  return Math.max(...held) / (SLOTS / primaries);
}

describe("the tags of partitions", () => {
  test.each([
    [2, [2]],
    [3, [3]],
    [4, [2, 4]],
    [6, [2, 3, 6]],
    [8, [2, 4, 8]],
    [12, [2, 3, 4, 6, 12]],
    [24, [2, 3, 4, 6, 8, 12, 24]],
  ])("lay %i partitions evenly over %j primaries", (partitions, primaries) => {
    for (const count of primaries) expect(worstShare(partitions, count)).toBeLessThanOrEqual(1.01);
  });

  test("keep away from the ends of their ranges, so that no rounding moves one", () => {
    const range = SLOTS / PARTITION_TAGS.length;
    for (const p of PARTITION_TAGS.keys()) {
      const within = (slotOfPartition(p) % range) / range;
      expect(within).toBeGreaterThan(0.4);
      expect(within).toBeLessThan(0.6);
    }
  });

  test("are as many as RELAY_PARTITIONS may be", () => {
    const read = settingsReader("RELAY_PARTITIONS");
    const most = PARTITION_TAGS.length;
    expect(read({ RELAY_PARTITIONS: String(most) }).partitions).toBe(most);
    expect(() => read({ RELAY_PARTITIONS: String(most + 1) })).toThrow("RELAY_PARTITIONS");
    expect(partitionOf("agent://alice", most)).toBeLessThan(most);
  });
});
