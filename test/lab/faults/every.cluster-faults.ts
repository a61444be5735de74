import { CLUSTER_AGENTS, CLUSTER_FAULTS } from "./catalogue.ts";
import { ClusterStage } from "./support/cluster-stage.ts";
import { injectAll } from "./inject.ts";

injectAll("cluster-faults", new ClusterStage(CLUSTER_AGENTS), CLUSTER_FAULTS);
