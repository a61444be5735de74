import { CLUSTER_AGENTS, CLUSTER_FAULTS } from "./support/catalogue.ts";
import { ClusterStage } from "./support/cluster-stage.ts";
import { injectAll } from "./support/inject-all.ts";

injectAll("cluster-faults", new ClusterStage(CLUSTER_AGENTS), CLUSTER_FAULTS);
