import type { Mutation } from "../mutation.ts";

const FIGURES = "shared/window/test/cluster-figures.test.ts";

/** What holds on a Redis Cluster, whatever befalls its nodes and slots. */
export const CLUSTER_MUTATIONS: readonly Mutation[] = [
  {
    name: "nothing starts with one partition on a cluster",
    file: "shared/runtime/src/settings-catalogue.ts",
    find: "leastOnCluster: 2",
    replace: "leastOnCluster: 1",
    tests: ["shared/runtime/test/settings.test.ts"],
  },
  {
    name: "a node that left the cluster has no series",
    file: "shared/runtime/src/metrics/service-metrics.ts",
    find: "this.reset();\n        if (labels.length === 0)",
    replace: "if (labels.length === 0)",
    tests: ["shared/runtime/test/metrics/service-metrics.test.ts", FIGURES],
  },
  {
    name: "the password of cluster-create is not said in clear where REDIS_URL asks for TLS",
    file: "deploy/redis/create-cluster.ts",
    find: 'protocol === "rediss:" && ',
    replace: "false && ",
    tests: ["test/deploy/create-cluster-tls.test.ts"],
  },
];
