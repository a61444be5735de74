import { beforeEach, describe, expect, test } from "@jest/globals";
import { ClusterInquiry, ClusterMember } from "../src/redis/cluster-members.ts";
import { believing, isOutdated, mostTrusted, parseSlotMap, standingOf } from "../src/redis/partitions.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { ReplicaProgress } from "../src/redis/server-info.ts";
import { LOGGER, redisBench } from "./kit.ts";

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

/** A link to a node that names itself as the primary of all slots, and these nodes as its replicas; nobody listens there. */
function nodeSaying(state: "ok" | "fail", epoch: number, [primary, ...replicas]: readonly string[]): RedisLink {
  const nodes = [primary, ...replicas].map((id) => ["127.0.0.1", 1, id]);
  const answers = {
    INFO: `cluster_state:${state}\r\ncluster_current_epoch:${epoch}\r\n`,
    SLOTS: [[0, 16_383, ...nodes]],
  };
  const command = async (_name: string, about: "INFO" | "SLOTS") => answers[about];
  return { command, client: { options: { host: "127.0.0.1" } } } as unknown as RedisLink;
}

test.each([
  ["redis-cluster://a:1,b:2", "10.0.0.1", "redis://10.0.0.1:6379"],
  ["redis-cluster://user:p%40ss@a:1", "redis-1.redis", "redis://user:p%40ss@redis-1.redis:6379"],
  ["rediss-cluster://:pass@[::1]:1", "fd00::1", "rediss://:pass@[fd00::1]:6379"],
])("a node of %s is reached with the same scheme and user: %s", (cluster, host, url) => {
  expect(new ClusterInquiry(cluster, "test").urlOf({ id: "a", host, port: 6379 })).toBe(url);
});

describe("a node that was cut off", () => {
  const inquiry = () => new ClusterInquiry("redis-cluster://127.0.0.1:1", "test");
  const primaryOf = async (asking: Promise<{ readonly primaries: readonly { address: { id: string } }[] }>) =>
    (await asking).primaries[0]?.address.id;

  test("leads nobody back who knows of a failover since, also where no other answers", async () => {
    const asked = inquiry();
    const former = nodeSaying("ok", 7, ["former", "replica"]);
    expect(await primaryOf(asked.ask([former]))).toBe("former");
    expect(await primaryOf(asked.ask([former, nodeSaying("ok", 8, ["replica", "former"])]))).toBe("replica");
    await expect(asked.ask([former])).rejects.toThrow();
    expect(await primaryOf(asked.ask([nodeSaying("ok", 8, ["replica", "former"])]))).toBe("replica");
  });

  test.each([
    ["does not know that another has its place", nodeSaying("ok", 7, ["former", "replica"]), true],
    ["nor whom it reaches", nodeSaying("fail", 7, ["former"]), true],
    ["is none that knows of the election", nodeSaying("ok", 8, ["former", "replica"]), false],
    ["nor one that knows who has its place", nodeSaying("ok", 7, ["replica", "former"]), false],
  ])("%s", async (_what, former, wasCutOff) => {
    const asked = inquiry();
    await asked.ask([nodeSaying("ok", 8, ["replica", "former"])]);
    expect(await asked.wasCutOff(former, 0)).toBe(wasCutOff);
  });

  test("is told from a cluster that was made anew, whose epochs begin anew", async () => {
    const asked = inquiry();
    await asked.ask([nodeSaying("ok", 8, ["a", "b"])]);
    expect(await primaryOf(asked.ask([nodeSaying("ok", 1, ["c", "d"])]))).toBe("c");
  });
});

describe("a primary of a cluster", () => {
  const bench = redisBench();
  let member: ClusterMember;

  beforeEach(async () => {
    member = new ClusterMember({ url: bench.redis.url, name: "test", logger: LOGGER });
    bench.later(() => member.link.stop());
    member.start();
    await member.starting;
  });

  const refused = (answer: string) => expect(member.call(() => Promise.reject(unavailable(new Error(answer))))).rejects;

  test("A primary that refuses everything was cut off for a while, until it answers again", async () => {
    expect(member.outOfReachSince).toBeUndefined();
    await refused("CLUSTERDOWN The cluster is down").toMatchObject({ code: "unavailable" });
    expect(member.link.up).toBe(true);
    const since = member.outOfReachSince as number;
    expect(since).toBeLessThanOrEqual(performance.now() - REDIS_LIMITS.cutOffMs);
    await refused("CLUSTERDOWN The cluster is down").toMatchObject({ code: "unavailable" });
    expect(member.outOfReachSince).toBe(since);
    await member.call((link) => link.command("PING"));
    expect(member.outOfReachSince).toBeUndefined();
  });

  test.each(["MOVED 1 127.0.0.1:1", "CLUSTERDOWN Hash slot not served", "TRYAGAIN"])(
    "A primary that says %s was not cut off",
    async (answer) => {
      await refused(answer).toMatchObject({ code: "unavailable" });
      expect(member.outOfReachSince).toBeUndefined();
    },
  );
});

/** INFO of a primary, and of what its replicas acknowledged: state and offset of each. */
function info(offset: number, ...replicas: readonly (readonly [string, number])[]): string {
  const lines = replicas.map(
    ([state, acked], n) => `slave${n}:ip=10.0.0.${n},port=6379,state=${state},offset=${acked},lag=0`,
  );
  return ["# Replication", "role:master", ...lines, `master_repl_offset:${offset}`, ""].join("\r\n");
}

function untilOf(...told: readonly (readonly [number, string])[]): number | undefined {
  const progress = new ReplicaProgress();
  for (const [at, said] of told) progress.told(said, at);
  return progress.receivedUntil;
}

test("What a primary answered is received up to the last moment whose writes its replica acknowledged", () => {
  expect(untilOf([1000, info(50, ["online", 50])])).toBe(1000);
  expect(untilOf([1000, info(50, ["online", 40])])).toBeUndefined();
  expect(untilOf([1000, info(50, ["online", 40])], [2000, info(90, ["online", 50])])).toBe(1000);
  expect(untilOf([1000, info(50, ["online", 50])], [2000, info(90, ["online", 89])])).toBe(1000);
});

test("Of several replicas any may be promoted: the one counts that has least, and one that is not online has nothing", () => {
  expect(untilOf([1000, info(50, ["online", 50], ["online", 49])])).toBeUndefined();
  expect(untilOf([1000, info(50, ["online", 50], ["send_bulk", 50])])).toBeUndefined();
});

test("While a replica is away, what it had received last stays, and it goes on once it is back", () => {
  const away = Array.from({ length: 300 }, (_, n) => [2000 + n, info(60 + n)] as const);
  expect(untilOf([1000, info(50, ["online", 50])], ...away)).toBe(1000);
  expect(untilOf([1000, info(50, ["online", 50])], ...away, [5000, info(400, ["online", 400])])).toBe(5000);
});

test("Replicas that are online are counted, and how far the last of them is behind", () => {
  const progress = new ReplicaProgress();
  expect(progress.replicas).toBeUndefined();
  progress.told(info(50, ["online", 50], ["online", 20], ["send_bulk", 0]), 1000);
  expect(progress.replicas).toEqual({ count: 2, lagBytes: 30 });
  progress.told(info(60), 2000);
  expect(progress.replicas).toEqual({ count: 0, lagBytes: 0 });
});

test("A Redis that tells nothing of replication has received nothing", () => {
  expect(untilOf([1000, "redis_version:7.0.15\r\n"])).toBeUndefined();
});
