import { GuardedClusterRelay } from "../../../cluster/support/guarded-cluster-relay.ts";
import { GuardedRelay } from "../../../support/guarded-redis.ts";
import { type Bus, oneRedis } from "./agent-relay.ts";

/** One Redis and a Redis Cluster, both as they are deployed, over TCP. */

export const PRIMARIES = ["primary 1", "primary 2", "primary 3"] as const;

export function deployedRedis(): Bus {
  return oneRedis(new GuardedRelay());
}

/** Three primaries with a replica each: what they send to it is their own cost, what it does with that is not counted. */
export function redisCluster(partitions: number): Bus {
  return onCluster(new GuardedClusterRelay(), partitions);
}

/** Three primaries alone: replicas take cores that a load on two of them has not to spare. */
export function unreplicatedCluster(partitions: number): Bus {
  return onCluster(new UnreplicatedRelay(), partitions);
}

class UnreplicatedRelay extends GuardedClusterRelay {
  override async start(): Promise<this> {
    await super.start();
    const { cluster } = this;
    const replicas = cluster.nodes.slice(PRIMARIES.length);
    await Promise.all(replicas.map((node) => cluster.kill(node)));
    await Promise.all(replicas.map((node) => cluster.untilGivenUp(node)));
    return this;
  }
}

function onCluster(relay: GuardedClusterRelay, partitions: number): Bus {
  const redisPids = async () => {
    const primaries = relay.cluster.nodes.slice(0, PRIMARIES.length);
    const pids = await Promise.all(primaries.map((node) => node.pid()));
    return Object.fromEntries(PRIMARIES.map((name, n) => [name, pids[n] as number]));
  };
  return { relay, partitions, redisPids };
}
