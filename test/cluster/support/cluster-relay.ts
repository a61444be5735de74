import { TestCluster } from "../../support/redis-cluster.ts";
import { TestRelay } from "../../support/relay.ts";

/** More than one in each primary. */
export const PARTITIONS = 12;

/** A relay on a private Redis Cluster of six processes. */
export class ClusterRelay extends TestRelay {
  readonly cluster: TestCluster = new TestCluster();

  override get environment() {
    return { ...super.environment, REDIS_URL: this.cluster.url, RELAY_PARTITIONS: String(PARTITIONS) };
  }

  override environmentOf(_user: unknown, overrides: Record<string, string> = {}) {
    return { ...this.environment, ...overrides };
  }

  override async start(): Promise<this> {
    await this.cluster.start();
    return await super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.cluster.stop();
  }
}
