import type { Mutation } from "../mutation.ts";

/** Whom agents accept envelopes from. Source: docs/protocol.md#accept_from. */
export const ACCEPT_FROM_MUTATIONS: readonly Mutation[] = [
  {
    name: "who sends to agents that do not accept it is not closed for it",
    file: "services/ws-connector/src/intake/responder.ts",
    find: ', "not_accepted_by_target"]);',
    replace: "]);",
    tests: ["test/conformance/accept-from.test.ts"],
  },
];
