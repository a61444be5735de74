import { fileURLToPath } from "node:url";
import base from "../../jest.config.mjs";

/**
 * Tests that need a Docker engine or kubectl; `npm test` leaves them out. What clients and connectors are promised is tested
 * again, on containers.
 */
export default {
  ...base,
  rootDir: fileURLToPath(new URL("../..", import.meta.url)),
  testMatch: ["<rootDir>/test/containers/**/*.containers.ts", "<rootDir>/test/{conformance,connectors}/**/*.test.ts"],
  moduleNameMapper: { "/relay-under-test\\.ts$": "<rootDir>/test/containers/support/relay-under-test.ts" },
  globalSetup: "<rootDir>/test/containers/support/build-images.mjs",
  testTimeout: 60_000,
  maxWorkers: 1,
};
