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
    file: "connector/src/platform/tunnel.ts",
    find: "if (isRefusal(status)) return end(refusalIn(answer, named, target));\n      if",
    replace: "if",
    tests: ["connector/test/platform/proxy.test.ts"],
  },
];
