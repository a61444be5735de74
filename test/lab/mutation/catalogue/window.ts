import type { Mutation } from "../mutation.ts";

/** What the window keeps, and who may change it. */
export const WINDOW_MUTATIONS: readonly Mutation[] = [
  {
    name: "partitions lie evenly over the primaries of a cluster",
    file: "shared/window/src/redis/keys.ts",
    find: '"1mq", "2zm"',
    replace: '"1a", "2a"',
    tests: ["test/deploy/partition-tags.test.ts"],
  },
];
