import { fileURLToPath } from "node:url";

/** What Node made of the sources for one process serves the next that a test starts; `test/support/compile-cache.ts` hands it on. */
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL(".local/compile-cache", import.meta.url));

export default {
  testEnvironment: "node",
  testMatch: ["<rootDir>/{shared,services,connector,testing,deploy,test}/**/*.test.ts"],
  // Tests of projects to come: what relay init writes.
  testPathIgnorePatterns: ["/node_modules/", "<rootDir>/connector/templates/"],
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      {
        jsc: { target: "es2024", parser: { syntax: "typescript" }, experimental: { keepImportAttributes: true } },
        module: { type: "es6" },
      },
    ],
  },
  reporters: ["default", "<rootDir>/test/support/closing-line.mjs"],
  testTimeout: 60_000,
  // A third of the time of two is waiting, on two cores: for processes to start, leases to end, clients to come back.
  maxWorkers: 3,
};
