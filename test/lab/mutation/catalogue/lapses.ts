import type { Mutation } from "../mutation.ts";

/** What a report may lack after a Redis Cluster lost something, and says so. */
export const LAPSE_MUTATIONS: readonly Mutation[] = [
  {
    name: "a report says that partitions are missing",
    file: "services/ops-reporting/src/reports/figures.ts",
    find: "[...source.missing, ...(presence?.missing ?? [])]",
    replace: "[...(presence?.missing ?? [])]",
    tests: ["services/ops-reporting/test/completeness.test.ts"],
  },
];
