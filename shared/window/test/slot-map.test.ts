import { describe, expect, test } from "@jest/globals";
import { believing, isOutdated, mostTrusted, parseSlotMap, standingOf } from "../src/redis/slot-map.ts";

const A = ["10.0.0.1", 7000, "a"];
const B = ["redis-b.example", 7001, "b"];
const C = ["10.0.0.3", 7002, "c"];

describe("the slot map", () => {
  test("has each primary once, with all its slots, and the replicas apart", () => {
    const map = parseSlotMap(
      [
        [0, 5, A, C],
        [6, 6, B],
        [7, 16_383, A, C],
      ],
      "asked",
    );
    expect(map).toEqual({
      primaries: [
        {
          address: { host: "10.0.0.1", port: 7000, id: "a" },
          ranges: [
            [0, 5],
            [7, 16_383],
          ],
        },
        { address: { host: "redis-b.example", port: 7001, id: "b" }, ranges: [[6, 6]] },
      ],
      replicas: [{ host: "10.0.0.3", port: 7002, id: "c" }],
    });
  });

  test.each([null, "", "?"])("takes the host that was asked where a node does not know its own: %p", (host) => {
    expect(parseSlotMap([[0, 1, [host, 7000, "a"]]], "asked").primaries[0]?.address.host).toBe("asked");
  });
});

describe("of nodes that disagree", () => {
  const word = (state: string, epoch: number, lastSlot = 16_383) => ({
    ...standingOf(`cluster_state:${state}\r\ncluster_current_epoch:${epoch}\r\n`),
    map: parseSlotMap([[0, lastSlot, A]], "asked"),
  });

  test("the one is believed that knows of the latest failover", () => {
    expect(mostTrusted([word("ok", 6), word("ok", 8), word("ok", 7)])).toMatchObject({ clusterEpoch: 8 });
  });

  test("one is not that was made to forget the others, and knows of its own slots alone", () => {
    const [forgetful, other] = [word("ok", 8, 5460), word("ok", 8)];
    expect(mostTrusted([forgetful, other])).toBe(other);
    expect(mostTrusted([other, forgetful])).toBe(other);
  });

  test("one that is cut off is not, where another is there", () => {
    expect(mostTrusted([word("fail", 9), word("ok", 8)])).toMatchObject({ clusterEpoch: 8 });
    expect(mostTrusted([word("fail", 9)])).toMatchObject({ clusterEpoch: 9 });
    expect(mostTrusted([])).toBeUndefined();
  });
});

describe("a word of a node", () => {
  const said = (state: string, epoch: number, primary = A) => ({
    ...standingOf(`cluster_state:${state}\r\ncluster_current_epoch:${epoch}\r\n`),
    map: parseSlotMap([[0, 1, primary, C]], "asked"),
  });
  const believed = believing(undefined, said("ok", 8));

  test("is outdated when its epoch is lower than what is believed, and only then", () => {
    expect(isOutdated(said("ok", 7), undefined)).toBe(false);
    expect(isOutdated(said("ok", 7), believed)).toBe(true);
    expect(isOutdated(said("fail", 7, B), believed)).toBe(true);
    expect(isOutdated(said("ok", 8), believed)).toBe(false);
  });

  test("of a cluster that was made anew is not, whose epochs begin anew", () => {
    const anew = { ...said("ok", 1), map: parseSlotMap([[0, 1, ["10.0.0.1", 7000, "new"]]], "asked") };
    expect(isOutdated(anew, believed)).toBe(false);
    expect(believing(believed, anew)).toMatchObject({ clusterEpoch: 1, map: anew.map });
  });

  test("that is cut off raises no bar for the others, nor lowers it", () => {
    const after = believing(believed, said("fail", 30, B));
    expect(after).toMatchObject({ clusterEpoch: 8, map: said("fail", 30, B).map });
    expect(isOutdated(said("ok", 9), after)).toBe(false);
    expect(believing(undefined, said("fail", 30))).toMatchObject({ clusterEpoch: 0 });
  });
});
