import type { Mutation } from "../mutation.ts";

/** `relay mcp`: whom its tools obey, over stdio and HTTP. */
export const CONNECTOR_MCP_MUTATIONS: readonly Mutation[] = [
  {
    name: "a model replies to the agent whose message it was",
    file: "connector/src/mcp/received-messages.ts",
    find: "JSON.stringify([from, envelopeId])",
    replace: "envelopeId",
    tests: ["connector/test/mcp/conversations.test.ts"],
  },
  {
    name: "MCP over HTTP is for whoever has the token",
    file: "connector/src/mcp/http/guards.ts",
    find: "return timingSafeEqual(digest(given), digest(token));",
    replace: "return true;",
    tests: ["connector/test/mcp/http.test.ts"],
  },
  {
    name: "strangers leave MCP's user room over HTTP",
    file: "connector/src/mcp/http/server.ts",
    find: "if (this.#strangers.size > MAX_STRANGERS) oldest?.destroy();",
    replace: "if (this.#strangers.size < 0) oldest?.destroy();",
    tests: ["connector/test/mcp/http.test.ts"],
  },
  {
    name: "strangers cannot take every connection of MCP over HTTP",
    file: "connector/src/mcp/http/server.ts",
    find: "MAX_CONNECTIONS = 128",
    replace: "MAX_CONNECTIONS = 64",
    tests: ["connector/test/mcp/http-strangers.test.ts"],
  },
  {
    name: "headers of MCP over HTTP have a time to come in",
    file: "connector/src/mcp/http/server.ts",
    find: "headersTimeout: 5000",
    replace: "headersTimeout: 0",
    tests: ["connector/test/mcp/http-strangers.test.ts"],
  },
  {
    name: "requests of MCP over HTTP have a time to come in",
    file: "connector/src/mcp/http/server.ts",
    find: "requestTimeout: 10_000",
    replace: "requestTimeout: 0",
    tests: ["connector/test/mcp/http-strangers.test.ts"],
  },
  {
    name: "MCP over HTTP is not for a page that rebound its name",
    file: "connector/src/mcp/http/guards.ts",
    find: "isOurs(`http://",
    replace: "isOurs(`http://localhost/",
    tests: ["connector/test/mcp/http.test.ts"],
  },
  {
    name: "MCP over HTTP is not for a page of a foreign origin",
    file: "connector/src/mcp/http/guards.ts",
    find: "(origin === undefined || isOurs(origin))",
    replace: "true",
    tests: ["connector/test/mcp/http.test.ts"],
  },
  {
    name: "MCP over HTTP listens for this machine alone unless told",
    file: "connector/src/cli/http-address.ts",
    find: "isLoopback(host) || names.length > 0",
    replace: "true",
    tests: ["connector/test/mcp/http.test.ts"],
  },
  {
    name: "sessions of MCP over HTTP are bounded",
    file: "connector/src/mcp/http/sessions.ts",
    find: "this.#transports.size > MAX_SESSIONS",
    replace: "false",
    tests: ["connector/test/mcp/http.test.ts"],
  },
  {
    name: "two MCP servers of one agent share its connection",
    file: "connector/src/cli/sharing/shared-connection.ts",
    find: "mayFollow ? await FollowedConnection.find(agent, websocketUrl, io) : undefined",
    replace: "undefined",
    tests: ["connector/test/mcp/shared.test.ts"],
  },
  {
    name: "an MCP server that believes others shares nobody's connection",
    file: "connector/src/cli/sharing/shared-connection.ts",
    find: "mayFollow ? await",
    replace: "agent ? await",
    tests: ["connector/test/mcp/shared.test.ts"],
  },
];
