import type { Mutation } from "../mutation.ts";

/** What the connector does not believe of a relay. */
export const CONNECTOR_MUTATIONS: readonly Mutation[] = [
  {
    name: "a start of an agent that has ended is refused",
    file: "connector/src/connector.ts",
    find: 'this.#state.status === "closed"',
    replace: "false",
    tests: ["test/connectors/behaviour.test.ts"],
  },
  {
    name: "a send after the end says why the agent ended",
    file: "connector/src/send-queue.ts",
    find: "return new RelayError(this.#end.code, detailsOf(this.#end));",
    replace: "return new RelayError(this.#end.code);",
    tests: ["test/connectors/behaviour.test.ts"],
  },
  {
    name: "a command ends with the npx that ran it",
    file: "connector/src/cli/main.ts",
    find: 'if (process.env.npm_command === "exec") {',
    replace: "if (false) {",
    tests: ["test/packages/npx.ci.ts"],
  },
  {
    name: "another envelope under an id of before is dropped with an error",
    file: "connector/src/delivery-judge.ts",
    find: "if (replayGuard.isReused(envelope))",
    replace: "if (false)",
    tests: ["test/connectors/behaviour.test.ts"],
  },
];
