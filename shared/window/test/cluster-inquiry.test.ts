import { describe, expect, test } from "@jest/globals";
import { ClusterInquiry } from "../src/redis/cluster-inquiry.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";

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
  ])("%s", async (_what, former, isLeftBehind) => {
    const asked = inquiry();
    await asked.ask([nodeSaying("ok", 8, ["replica", "former"])]);
    expect(await asked.isLeftBehind(former, 0)).toBe(isLeftBehind);
  });

  test("is told from a cluster that was made anew, whose epochs begin anew", async () => {
    const asked = inquiry();
    await asked.ask([nodeSaying("ok", 8, ["a", "b"])]);
    expect(await primaryOf(asked.ask([nodeSaying("ok", 1, ["c", "d"])]))).toBe("c");
  });
});
