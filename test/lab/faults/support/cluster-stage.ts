import { CONTROL_SLOT, partitionOf, slotOfPartition } from "relay-window/redis/partitions.ts";
import type { ClusterNode } from "../../../../deploy/local/cluster-node.ts";
import { PARTITIONS } from "../../../cluster/support/cluster-relay.ts";
import { GuardedClusterRelay } from "../../../cluster/support/guarded-cluster-relay.ts";
import type { GuardedCluster } from "../../../support/deployed-users.ts";
import { RedisProxy } from "../../../support/redis-proxy.ts";
import { clusterClient } from "../../../support/test-redis.ts";
import { countersIn } from "../../../support/window-view.ts";
import type { Fleet } from "../../fleet.ts";
import type { Stage, Wiring } from "../../stages.ts";

export type ClusterFleet = Fleet<ClusterStage>;

const REDIRECTED_CONNECTIONS = new URL("../../redirected-connections.mjs", import.meta.url).href;

/** A Redis Cluster of three primaries with a replica each. */
export class ClusterStage implements Stage {
  readonly relay: GuardedClusterRelay;
  readonly envelopesPerSecond = 200;

  constructor(names: readonly string[]) {
    this.relay = new GuardedClusterRelay(...names);
  }

  get cluster(): GuardedCluster {
    return this.relay.cluster;
  }

  /** A process has a proxy before each of the first six nodes, in their order. */
  async wire(): Promise<Wiring> {
    const { nodes } = this.cluster;
    const starting = nodes.map(({ port }) => new RedisProxy(`redis://127.0.0.1:${port}`).start());
    const proxies = await Promise.all(starting);
    const redirected = nodes.map(({ port }, n) => `${port}:${proxies[n]?.host.split(":")[1]}`);
    return {
      proxies,
      settings: { REDIRECTED_PORTS: redirected.join(",") },
      nodeArguments: ["--import", REDIRECTED_CONNECTIONS],
    };
  }

  async counters(): Promise<Readonly<Record<string, number>>> {
    const client = clusterClient(this.cluster.adminUrl);
    try {
      return await countersIn(client, PARTITIONS);
    } finally {
      client.disconnect();
    }
  }

  async flushScripts(): Promise<void> {
    const primary = await this.cluster.primaryOf(CONTROL_SLOT);
    await primary.ask("SCRIPT FLUSH");
  }

  async caughtUp(): Promise<void> {
    await Promise.all(this.cluster.nodes.map((node) => node.ask("PING")));
  }

  async heal(): Promise<void> {
    await this.cluster.mend();
  }

  /** The proxies of all pods before one of the first six nodes. */
  networkTo(node: ClusterNode, { pods }: ClusterFleet): RedisProxy[] {
    const n = this.cluster.nodes.indexOf(node);
    return pods.map(({ proxies }) => proxies[n] as RedisProxy);
  }
}

/** The slot of an agent's partition. */
export function slotOfAgent(agent: string): number {
  return slotOfPartition(partitionOf(agent, PARTITIONS));
}
