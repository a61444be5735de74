import { CLIENT_FAULTS } from "./clients.ts";
import { CLOCK_FAULTS } from "./support/clock-faults.ts";
import type { ClusterFleet } from "./support/cluster-stage.ts";
import type { Fault } from "./support/fault.ts";
import { GATEWAY_FAILOVER } from "./support/gateway-failover.ts";
import { GATEWAY_FAULT } from "./support/gateway-fault.ts";
import { MOVING_FAULTS } from "./support/moving-faults.ts";
import { NODE_FAULTS } from "./cluster.ts";
import { POD_FAULTS } from "./services.ts";
import { REDIS_FAULTS } from "./redis.ts";
import type { SingleFleet } from "./support/single-stage.ts";

/** Every fault that the relay is held against; a line of the table each. */
export const FAULTS: readonly Fault<SingleFleet>[] = [
  ...REDIS_FAULTS,
  ...POD_FAULTS,
  GATEWAY_FAULT,
  ...CLOCK_FAULTS,
  ...CLIENT_FAULTS,
];

/** Names of agents: more than one on each of two connectors, of both algorithms. */
export const AGENTS = ["ada", "bea-hmac", "cid-hmac", "dan-hmac", "eve-hmac", "flo"];

/** The same on a Redis Cluster. */
export const CLUSTER_FAULTS: readonly Fault<ClusterFleet>[] = [...NODE_FAULTS, ...MOVING_FAULTS, GATEWAY_FAILOVER];

/** Names of agents: four in each shard, of both algorithms, and of each pair one on each of two connectors. */
export const CLUSTER_AGENTS = [
  ...["cid-hmac", "flo", "eve-hmac", "hal", "ada", "bea-hmac"],
  ...["dan-hmac", "gus-hmac", "quy", "mia", "ida-hmac", "vic-hmac"],
];
