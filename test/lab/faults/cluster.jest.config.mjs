import faults from "./jest.config.mjs";

/** Every fault of a Redis Cluster, again and again. */
export default { ...faults, testMatch: ["<rootDir>/test/lab/faults/*.cluster-faults.ts"] };
