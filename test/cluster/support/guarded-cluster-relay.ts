import { GuardedCluster } from "../../support/guarded-cluster.ts";
import type { RedisUser } from "../../support/test-redis.ts";
import { ClusterRelay } from "./cluster-relay.ts";

/** A relay on a Redis Cluster of six processes, each service as the user that is deployed. */
export class GuardedClusterRelay extends ClusterRelay {
  override readonly cluster = new GuardedCluster();

  override environmentOf(user: RedisUser, overrides: Record<string, string> = {}) {
    return { ...this.environment, REDIS_URL: this.cluster.urlFor(user), ...overrides };
  }
}
