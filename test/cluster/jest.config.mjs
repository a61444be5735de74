import { fileURLToPath } from "node:url";
import base from "../../jest.config.mjs";

/** Of one Redis, or with a cluster of their own; why, says CONTRIBUTING.md, "On a Redis Cluster". */
const LEFT_OUT = [
  "test/conformance/outage.test.ts",
  "test/integration/cluster-completeness.test.ts",
  "test/integration/cluster-left-behind.test.ts",
  "test/integration/cluster-partly-down.test.ts",
  "test/integration/cluster-reports.test.ts",
  "test/integration/cluster-tls.test.ts",
  "test/integration/lost-shard-told.test.ts",
  "test/integration/redis-cluster.test.ts",
  "test/integration/metrics.test.ts",
  "test/integration/partitions-differ.test.ts",
  "test/integration/privacy.test.ts",
  "test/integration/rates-over-pods.test.ts",
  "test/integration/redis-full.test.ts",
  "test/integration/redis-lost.test.ts",
  "test/integration/redis-misconfigured.test.ts",
  "test/integration/secrets.test.ts",
  "test/integration/subscription-gap.test.ts",
];

/** What clients are promised, and what several services do together, again, on a Redis Cluster. */
export default {
  ...base,
  rootDir: fileURLToPath(new URL("../..", import.meta.url)),
  testMatch: ["<rootDir>/test/{conformance,integration}/**/*.test.ts"],
  testPathIgnorePatterns: [...base.testPathIgnorePatterns, ...LEFT_OUT.map((file) => `<rootDir>/${file}$`)],
  moduleNameMapper: { "/relay-under-test\\.ts$": "<rootDir>/test/cluster/support/relay-under-test.ts" },
};
