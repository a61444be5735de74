import { GuardedClusterRelay } from "../../../cluster/support/guarded-cluster-relay.ts";
import { GuardedRelay } from "../../../support/guarded-redis.ts";
import { type Bus, oneRedis } from "./agent-relay.ts";

/** One Redis and a Redis Cluster, both as they are deployed, over TCP. */

export const PRIMARIES = ["primary 1", "primary 2", "primary 3"] as const;

export function deployedRedis(sendingPods: number): Bus {
  return oneRedis(new GuardedRelay(), sendingPods);
}

/** Three primaries with a replica each: what they send to it is their own cost, what it does with that is not counted. */
export function redisCluster(partitions: number, sendingPods: number): Bus {
  const relay = new GuardedClusterRelay();
  const redisPids = async () => {
    const { cluster } = relay;
    const primaries = cluster.nodes.slice(0, PRIMARIES.length);
    const pids = await Promise.all(primaries.map((node) => node.pid()));
    return Object.fromEntries(PRIMARIES.map((name, n) => [name, pids[n] as number]));
  };
  return { relay, partitions, sendingPods, redisPids };
}
