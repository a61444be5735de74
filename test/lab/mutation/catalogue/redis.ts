import type { Mutation } from "../mutation.ts";

/** What holds while Redis is short of memory, cannot be used, or comes back. */
export const REDIS_MUTATIONS: readonly Mutation[] = [
  {
    name: "reports know before they are ready whether their user may read",
    file: "services/ops-reporting/src/service.ts",
    find: "await readSnapshot(link, window)",
    replace: "await Promise.resolve()",
    tests: ["test/deploy/redis-wrong-user.test.ts"],
  },
];
