import type { Mutation } from "../mutation.ts";

export const OWNERSHIP_MUTATIONS: readonly Mutation[] = [
  {
    name: "ownership: a connection sends for its own agents",
    file: "services/ws-connector/src/intake/intake.ts",
    find: "if (!agents.owns(envelope.from))",
    replace: "if (false)",
    tests: ["test/conformance/refusals.test.ts"],
  },
  {
    name: "release of agents whose key was revoked",
    file: "services/ws-connector/src/agents/revocation.ts",
    find: "this.#keys.onChange(() => this.#releaseRevoked());",
    replace: "",
    tests: ["test/conformance/keys.test.ts"],
  },
];
