import type { Mutation } from "../mutation.ts";

/** `relay mcp`: whom its tools obey, over stdio and HTTP. */
export const CONNECTOR_MCP_MUTATIONS: readonly Mutation[] = [
  {
    name: "what nobody sees is shown escaped",
    file: "connector/src/said-text.ts",
    find: "\\p{Default_Ignorable_Code_Point}",
    replace: "\\p{Bidi_Control}",
    tests: ["connector/test/frames.test.ts", "connector/test/cli/output.test.ts"],
  },
];
