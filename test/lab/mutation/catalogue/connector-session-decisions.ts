import type { Mutation } from "../mutation.ts";

/** What a model, or whoever is at a prompt, knows and is told of sessions that wait for a decision, and of decisions. */
export const CONNECTOR_SESSION_DECISION_MUTATIONS: readonly Mutation[] = [
  {
    name: "a model approves no request that its agent did not receive",
    file: "connector/src/mcp/decisions.ts",
    find: 'if (verdict === "approved" && !state.isReceived) throw notReceived(state);',
    replace: "",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "relay approve approves no request that the agent did not receive",
    file: "connector/src/cli/commands/decisions.ts",
    find: ".can_deliver_realtime !== false",
    replace: ".can_deliver_realtime !== null",
    tests: ["connector/test/cli/sessions.test.ts"],
  },
  {
    name: "a model that forgot a request finds it in its status until it is decided",
    file: "connector/src/mcp/session-requests.ts",
    find: "keepNewest(sessions, ",
    replace: "keepNewest(new Map(), ",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "a model decides a request to whom signed it, whatever a notice says",
    file: "connector/src/mcp/session-requests.ts",
    find: "this.#received.get(sessionId) ?? this.#noticed.get(sessionId)",
    replace: "this.#noticed.get(sessionId) ?? this.#received.get(sessionId)",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "who shares a connection is told of a request as it was signed",
    file: "connector/src/cli/control/session-notices.ts",
    find: "new Map([...this.#noticed, ...this.#received])",
    replace: "new Map([...this.#received, ...this.#noticed])",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "a model is told what another process of its agent decided",
    file: "connector/src/mcp/decisions.ts",
    find: "throw closed(agent, decision, state);\n  }\n}",
    replace: "throw error;\n  }\n}",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "a model is told what was decided while it was away",
    file: "connector/src/mcp/agent.ts",
    find: "for (const session of this.decisions.noticed(notice.sessions)) this.queue.add(session);",
    replace: "this.decisions.noticed(notice.sessions);",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "a model is told of a decision once",
    file: "connector/src/mcp/decided-sessions.ts",
    find: "if (this.#known.has(session.sessionId)) return false;",
    replace: "",
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
  {
    name: "a process that shares a connection knows of the requests that came before",
    file: "connector/src/cli/control/server.ts",
    find: "this.#notices.received(delivery)",
    replace: "delivery",
    tests: ["connector/test/mcp/shared.test.ts"],
  },
  {
    name: "a model is told that another process shares its connection",
    file: "connector/src/cli/control/server.ts",
    find: "this.#count(1);",
    replace: "",
    tests: ["connector/test/mcp/shared.test.ts"],
  },
  {
    name: "a process that shares a connection is told what was decided before",
    file: "connector/src/cli/control/follow-lines.ts",
    find: 'return notice.kind === "pending_sessions" || notice.kind === "decided_sessions";',
    replace: 'return notice.kind === "pending_sessions";',
    tests: ["connector/test/mcp/sessions.test.ts"],
  },
];
