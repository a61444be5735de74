import { fileURLToPath } from "node:url";
import base from "../../jest.config.mjs";

/** What clients are promised, again, on a Redis Cluster. */
export default {
  ...base,
  rootDir: fileURLToPath(new URL("../..", import.meta.url)),
  testMatch: ["<rootDir>/test/conformance/**/*.test.ts"],
  // Of one Redis that dies or hangs as a whole.
  testPathIgnorePatterns: [...base.testPathIgnorePatterns, "/conformance/outage\\.test\\.ts$"],
  moduleNameMapper: { "/relay-under-test\\.ts$": "<rootDir>/test/cluster/support/relay-under-test.ts" },
};
