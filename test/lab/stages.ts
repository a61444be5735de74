import { CONTROL_SLOT, partitionOf, slotOfPartition } from "relay-window/redis/partitions.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { PARTITIONS } from "../cluster/support/cluster-relay.ts";
import { GuardedClusterRelay } from "../cluster/support/guarded-cluster-relay.ts";
import type { GuardedCluster } from "../support/deployed-users.ts";
import type { GuardedRelay } from "../support/guarded-redis.ts";
import { RedisProxy } from "../support/redis-proxy.ts";
import type { TestRelay } from "../support/relay.ts";
import { clusterClient, type RedisUser } from "../support/test-redis.ts";
import { countersIn, type WindowView } from "../support/window-view.ts";

/** How a process reaches Redis: through proxies of its own. */
interface Wiring {
  readonly proxies: readonly RedisProxy[];
  readonly settings: Readonly<Record<string, string>>;
  /** Arguments of Node itself. */
  readonly nodeArguments: readonly string[];
}

/** The Redis, one or a cluster, over which the services of a fleet run. */
export interface Stage {
  readonly relay: TestRelay;
  /** Proxies for a process that is about to start. */
  wire(service: RedisUser): Promise<Wiring>;
  /** Of acceptance, over all partitions. */
  counters(): Promise<Readonly<Record<string, number>>>;
  /** One Redis has no scripts any more. */
  flushScripts(): Promise<void>;
  /** Resolves when each Redis has come to all that was there for it before, the ends of connections too. */
  caughtUp(): Promise<void>;
  /** Ends what a fault left behind: each Redis is there and answers. */
  heal(): Promise<void>;
}

/** One Redis, which processes reach as it is deployed, with nothing between. */
export class DirectStage<Relay extends TestRelay = TestRelay> implements Stage {
  readonly relay: Relay;
  #view: WindowView | undefined;

  constructor(relay: Relay) {
    this.relay = relay;
  }

  /** Looks into Redis, and does to it what no service may. */
  get view(): WindowView {
    this.#view ??= this.relay.view();
    return this.#view;
  }

  async wire(_service: RedisUser): Promise<Wiring> {
    return { proxies: [], settings: {}, nodeArguments: [] };
  }

  async counters(): Promise<Readonly<Record<string, number>>> {
    return await this.view.counters();
  }

  async flushScripts(): Promise<void> {
    await this.view.client.script("FLUSH");
  }

  async caughtUp(): Promise<void> {
    await this.view.client.ping();
  }

  async heal(): Promise<void> {
    await this.relay.redis.resume().catch(() => {});
  }
}

/** The same, with a proxy between each process and Redis. */
export class SingleStage extends DirectStage<GuardedRelay> {
  override async wire(service: RedisUser): Promise<Wiring> {
    const { redis } = this.relay;
    const proxy = await new RedisProxy(redis.url).start();
    return { proxies: [proxy], settings: { REDIS_URL: proxy.urlFor(redis.urlFor(service)) }, nodeArguments: [] };
  }
}

const REDIRECTED_CONNECTIONS = new URL("redirected-connections.mjs", import.meta.url).href;

/** A Redis Cluster of three primaries with a replica each. */
export class ClusterStage implements Stage {
  readonly relay: GuardedClusterRelay;

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

  /** The proxy of each pod before one of the first six nodes. */
  proxiesBefore(node: ClusterNode, pods: readonly { readonly proxies: readonly RedisProxy[] }[]): RedisProxy[] {
    const n = this.cluster.nodes.indexOf(node);
    return pods.map(({ proxies }) => proxies[n] as RedisProxy);
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
}

/** The slot of an agent's partition. */
export function slotOfAgent(agent: string): number {
  return slotOfPartition(partitionOf(agent, PARTITIONS));
}
