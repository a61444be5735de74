import type { Mutation } from "../mutation.ts";

/** How much a connection may send, and when it is read. */
export const INFLOW_MUTATIONS: readonly Mutation[] = [
  {
    name: "envelope rate limit",
    file: "services/ws-connector/src/throttle/rates.ts",
    find: "const ms = envelopes.wait(this.#envelopesFullAt, now);",
    replace: "const ms = 0;",
    tests: ["services/ws-connector/test/throttle.test.ts", "test/conformance/backpressure.test.ts"],
  },
  {
    name: "a fault in judging an envelope keeps no other from its answer",
    file: "shared/runtime/src/verification/envelope-verifier.ts",
    find: "done(judgeOf(candidate, isIssued, isSigned));",
    replace: "const result = judgeOf(candidate, isIssued, isSigned)();\n      done(() => result);",
    tests: ["shared/runtime/test/verification/envelope-verifier.test.ts"],
  },
];
