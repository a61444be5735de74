import type { Mutation } from "../mutation.ts";

/** What a model is told where its agent cannot be reached, or its message could go astray. */
export const CONNECTOR_MCP_CONNECTION_MUTATIONS: readonly Mutation[] = [
  {
    name: "an MCP server whose key cannot be used serves its client",
    file: "connector/src/cli/commands/mcp.ts",
    find: "await agent.present().catch(() => failure && reporter.fail(failure));",
    replace: "await agent.present();",
    tests: ["connector/test/mcp/key-file.test.ts"],
  },
  {
    name: "a key file that was mended counts without a restart",
    file: "connector/src/mcp/late-agent.ts",
    find: "this.#agent = undefined;",
    replace: "",
    tests: ["connector/test/mcp/key-file.test.ts"],
  },
  {
    name: "a model is told why the relay is out of reach",
    file: "connector/src/cli/control/told-states.ts",
    find: "isUnreachable && why !== undefined ?",
    replace: "isUnreachable && why === null ?",
    tests: ["connector/test/mcp/lifecycle.test.ts", "connector/test/mcp/shared.test.ts"],
  },
  {
    name: "a model whose question gave up first is told why the relay is out of reach",
    file: "connector/src/mcp/tool.ts",
    find: 'state.status === "closed" || state.status === "reconnecting"',
    replace: 'state.status === "closed"',
    tests: ["connector/test/mcp/away.test.ts"],
  },
  {
    name: "a model that shares a connection is told why that one is away",
    file: "connector/src/cli/control/follow-lines.ts",
    find: "const why = isErrorCode(code) && {",
    replace: "const why = code === null && isErrorCode(code) && {",
    tests: ["connector/test/mcp/shared.test.ts"],
  },
  {
    name: "a model is told that another process has its connection",
    file: "connector/src/cli/sharing/shared-connection.ts",
    find: "this.#isShared = true;",
    replace: "",
    tests: ["connector/test/mcp/shared.test.ts"],
  },
  {
    name: "a reply goes to nobody who used the id of another's message",
    file: "connector/src/mcp/conversations.ts",
    find: "if (others.length > 0) throw ambiguous();",
    replace: "",
    tests: ["connector/test/mcp/conversations.test.ts"],
  },
  {
    name: "a control line is advised of its own members",
    file: "connector/src/cli/control/request-lines.ts",
    find: "Object.hasOwn(HINTS, code) ? HINTS[code] : hinted",
    replace: "hinted",
    tests: ["connector/test/cli/ask.test.ts"],
  },
  {
    name: "a command that goes through a listener is advised of its own options",
    file: "connector/src/cli/transports/listener.ts",
    find: "hintOf({ code, hint })",
    replace: "hint",
    tests: ["connector/test/cli/ask.test.ts"],
  },
  {
    name: "relay status tells of others where one agent cannot be told",
    file: "connector/src/cli/commands/status.ts",
    find: "failure !== undefined && all.every((one) => one.failure)",
    replace: "failure !== undefined",
    tests: ["connector/test/cli/status.test.ts"],
  },
];
