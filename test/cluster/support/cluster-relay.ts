import type { Redis } from "ioredis";
import { TestCluster } from "../../support/redis-cluster.ts";
import { TestRelay } from "../../support/relay.ts";
import { clusterClient, type RedisUser } from "../../support/test-redis.ts";
import { ClusterProxy } from "./cluster-proxy.ts";

/** More than one in each primary. */
export const PARTITIONS = 12;

/** A relay on a private Redis Cluster of six processes. Its `redis` never runs. */
export class ClusterRelay extends TestRelay {
  readonly cluster: TestCluster = new TestCluster();

  override get partitions() {
    return PARTITIONS;
  }

  /** For all services in one process, as somebody who may do what each of them may. */
  override get environment() {
    return { ...super.environment, REDIS_URL: this.cluster.adminUrl, RELAY_PARTITIONS: String(PARTITIONS) };
  }

  override urlFor(user: RedisUser): string {
    return this.cluster.urlFor(user);
  }

  override async loseWindow(): Promise<void> {
    await this.view().empty();
  }

  override async proxy(): Promise<ClusterProxy> {
    const proxy = await new ClusterProxy(this.urlFor("ws-connector"), this.cluster.nodes).start();
    this.defer(() => proxy.stop());
    return proxy;
  }

  /** It has the commands of a client of one Redis, for keys of one slot. */
  protected override adminClient(): Redis {
    return clusterClient(this.cluster.adminUrl) as unknown as Redis;
  }

  protected override async startRedis(): Promise<void> {
    await this.cluster.start();
  }

  protected override async stopRedis(): Promise<void> {
    await this.cluster.stop();
  }
}
