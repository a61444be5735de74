import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL(".", import.meta.url));

/** Processes that tests start share what Node compiled. `test/support/pod-process.ts` hands the folder on. */
process.env.NODE_COMPILE_CACHE ??= `${ROOT}.local/compile-cache`;
/**
 * Each thread of a worker would have a heap of glibc's own, which keeps what was freed. It has a hundred such threads in its
 * life, one for each pod that verifies signatures.
 */
process.env.MALLOC_ARENA_MAX ??= "2";
process.env.MALLOC_TRIM_THRESHOLD_ ??= "131072";

const base = {
  rootDir: ROOT,
  // Not <rootDir>, which can be a tree of the version before.
  testEnvironment: `${ROOT}test/support/environment.mjs`,
  // Tests that `relay init` writes into new projects.
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
};

/** @param {string} displayName the name for --selectProjects. @param {string[]} files below the root. */
function project(displayName, files, { leftOut = [], ...options } = {}) {
  return {
    ...base,
    displayName,
    testMatch: files.map((file) => `<rootDir>/${file}`),
    ...options,
    testPathIgnorePatterns: [...base.testPathIgnorePatterns, ...leftOut.map((file) => `<rootDir>/${file}`)],
  };
}

/** Where tests may be. Their names say what runs them. */
const ANYWHERE = "{shared,services,connector,testing,deploy,test}/**";
/** It judges texts, and so it is part of `npm run check`. */
const PROSE = "test/docs/prose.test.ts";

/** Tests of test/conformance and test/integration that do not run on the Redis Cluster of `npm run test:cluster`. */
const NOT_ON_A_CLUSTER = [
  // One Redis hangs, dies or fills up. `npm run test:faults:cluster` has what befalls primaries.
  "test/conformance/outage.test.ts",
  "test/integration/redis-full.test.ts",
  // The test changes what one Redis has set, or what its users may do.
  "test/integration/not-ready.test.ts",
  "test/integration/subscription-gap.test.ts",
  // The test watches all that one Redis runs, or names its links.
  "test/integration/metrics.test.ts",
  "test/integration/secrets.test.ts",
  // The test has a cluster of its own, in `npm test`.
  "test/integration/cluster-completeness.test.ts",
  "test/integration/cluster-tls.test.ts",
  "test/integration/lost-shard.test.ts",
  "test/integration/redis-cluster.test.ts",
];

/** The tests run on a relay of this folder's. */
const relayOf = (folder) => ({
  moduleNameMapper: { "/relay-under-test\\.ts$": `<rootDir>/test/${folder}/support/relay-under-test.ts` },
});
const images = { globalSetup: "<rootDir>/test/containers/support/build-images.mjs" };

/** A tree of the version before: `test/lab/upgrade/main.ts` names it. */
const { RELAY_PREVIOUS_TREE } = process.env;
const previous = {
  rootDir: RELAY_PREVIOUS_TREE,
  moduleNameMapper: { "/relay-under-test\\.ts$": `${ROOT}test/lab/upgrade/mixed-relay.ts` },
};

export default {
  reporters: ["default", "<rootDir>/test/support/closing-line.mjs"],
  // Tests wait for a third of their time: for processes, leases and clients. So three workers fill two cores.
  maxWorkers: 3,
  // Jest ignores a timeout of a project.
  testTimeout: 60_000,
  projects: [
    project("test", [`${ANYWHERE}/*.test.ts`], { leftOut: [PROSE] }),
    project("ci", [`${ANYWHERE}/*.ci.ts`]),
    project("prose", [PROSE]),
    project("browser", [`${ANYWHERE}/*.browser.ts`]),
    project("cluster", ["test/{conformance,integration}/**/*.test.ts"], {
      ...relayOf("cluster"),
      leftOut: NOT_ON_A_CLUSTER,
    }),
    project("containers", [`${ANYWHERE}/*.containers.ts`], images),
    project("containers-clients", ["test/{conformance,connectors}/**/*.test.ts"], {
      ...relayOf("containers"),
      ...images,
    }),
    project("faults", ["test/lab/{faults,abuse}/**/*.faults.ts"]),
    project("cluster-faults", ["test/lab/faults/*.cluster-faults.ts"]),
    project("upgrade", ["test/lab/upgrade/*.upgrade.ts"]),
    ...(RELAY_PREVIOUS_TREE ? [project("upgrade-clients", ["test/conformance/**/*.test.ts"], previous)] : []),
  ],
};
