import type { Mutation } from "../mutation.ts";

/** That heartbeats which are gathered say what is true, and give nobody an agent. */
export const HEARTBEAT_MUTATIONS: readonly Mutation[] = [
  {
    name: "no thread is woken for a few signatures more than another's part",
    file: "shared/runtime/src/verification/signature-verifier.ts",
    find: "Math.floor(checks.length / MIN_CHECKS)",
    replace: "Math.ceil(checks.length / MIN_CHECKS)",
    tests: ["shared/runtime/test/verification/signature-verifier.test.ts"],
  },
];
