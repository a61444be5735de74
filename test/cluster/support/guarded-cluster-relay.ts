import { GuardedCluster } from "../../support/deployed-users.ts";
import { ClusterRelay } from "./cluster-relay.ts";

/** A relay on a Redis Cluster of six processes, each service as the user that is deployed. */
export class GuardedClusterRelay extends ClusterRelay {
  override readonly cluster = new GuardedCluster();
}
