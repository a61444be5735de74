import { describe, expect, test } from "@jest/globals";
import { KeyRefusals } from "../../src/metrics/service-metrics.ts";

const MAX_NAMED = 50;

function refused(counts: readonly (readonly [string, number])[]): KeyRefusals {
  const refusals = new KeyRefusals();
  for (const [keyId, count] of counts) for (let n = 0; n < count; n += 1) refusals.add(keyId);
  return refusals;
}
const many = Array.from({ length: MAX_NAMED }, (_, n) => [`key-${n}`, 2] as const);

describe("Refusals by key", () => {
  test("count each key under its id", () => {
    expect(
      new Map(
        refused([
          ["a", 2],
          ["b", 1],
        ]),
      ),
    ).toEqual(
      new Map([
        ["a", 2],
        ["b", 1],
      ]),
    );
  });

  test("name fifty keys at most, and count the rest as other", () => {
    const counts = new Map(refused([...many, ["late-1", 2], ["late-2", 1]]));
    expect(counts.size).toBe(MAX_NAMED + 1);
    expect(counts.get("other other")).toBe(3);
  });

  test("name a key that is refused more than a named one, in its place and with all of its count", () => {
    const counts = new Map(refused([...many, ["worst", 30]]));
    expect(counts.get("worst")).toBe(30);
    expect(counts.size).toBe(MAX_NAMED + 1);
    expect([...counts.keys()].filter((keyId) => keyId.startsWith("key-"))).toHaveLength(MAX_NAMED - 1);
  });

  test("never let a count fall: what was counted as other stays there", () => {
    const refusals = refused([...many, ["worst", 2]]);
    const before = new Map(refusals).get("other other");
    refusals.add("worst");
    expect([before, new Map(refusals).get("other other")]).toEqual([2, 2]);
    expect(new Map(refusals).get("worst")).toBe(3);
  });
});
