import { ClusterStage, Fleet } from "../fleet.ts";
import { CLUSTER_FAULTS } from "./cluster.ts";
import { injectAll } from "./inject.ts";

/** Four in each shard, of both algorithms, and of each pair one on each of two connectors. */
const AGENTS = [
  ...["cid-hmac", "flo", "eve-hmac", "hal", "ada", "bea-hmac"],
  ...["dan-hmac", "gus-hmac", "quy", "mia", "ida-hmac", "vic-hmac"],
];
const PER_SECOND = 200;

injectAll("cluster-faults", new Fleet(new ClusterStage(AGENTS), { connectors: 2 }), CLUSTER_FAULTS, PER_SECOND);
