import type { Mutation } from "../mutation.ts";

const CLAIMS_OVER_PARTITIONS = "shared/window/test/claims.test.ts";

/** Idempotency-Keys and the claims on them, which the window keeps. */
export const IDEMPOTENCY_MUTATIONS: readonly Mutation[] = [
  {
    name: "an Idempotency-Key is bound to one body, whatever the targets",
    file: "shared/window/src/lua/sessions.lua",
    find: "if bound and bound ~= body then",
    replace: "if false then",
    tests: [CLAIMS_OVER_PARTITIONS, "services/gateway/test/publisher.test.ts"],
  },
  {
    name: "an Idempotency-Key is bound before its request is accepted",
    file: "shared/window/src/acceptance/acceptor.ts",
    find: '(kind === "session_request" || claim !== undefined)',
    replace: 'kind === "session_request"',
    tests: [CLAIMS_OVER_PARTITIONS, "services/gateway/test/publisher.test.ts"],
  },
];
