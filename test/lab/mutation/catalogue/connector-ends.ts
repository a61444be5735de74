import type { Mutation } from "../mutation.ts";

/** What the connector does when its connection ends, or its relay is away for a while. */
export const CONNECTOR_END_MUTATIONS: readonly Mutation[] = [
  {
    name: "a proxy that is silent holds up no end",
    file: "connector/src/platform/node.ts",
    find: "    over.abort();\n",
    replace: "",
    tests: ["connector/test/platform/proxy.test.ts"],
  },
  {
    name: "a proxy's refusal is not the relay's",
    file: "connector/src/platform/proxy.ts",
    find: "if (statusCode >= 200 && statusCode < 300) return resolve(socket);",
    replace: "return resolve(socket);",
    tests: ["connector/test/platform/proxy.test.ts"],
  },
];
