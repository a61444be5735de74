import type { Mutation } from "../mutation.ts";

/** What a program of the same user without the agent's key can do to processes that share a connection. */
export const CONNECTOR_CONTROL_MUTATIONS: readonly Mutation[] = [
  {
    name: "one sender's flood drops nobody else's deliveries",
    file: "connector/src/oldest-of-most.ts",
    find: "counts.get(senderOf(item)) === most",
    replace: "counts.has(senderOf(item))",
    tests: ["connector/test/parts.test.ts", "connector/test/mcp/waiting.test.ts"],
  },
];
