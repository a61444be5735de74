export const AGENT_SCHEME = "agent://";

/** An agent id: `agent://` and a name. Source: docs/protocol.md#agents. */
export const AGENT_ID = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

/** True for an agent id, and for the namespace of a team, such as `agent://acme.*`. */
export function isAgentPattern(value: unknown): value is string {
  return typeof value === "string" && AGENT_ID.test(value.endsWith(".*") ? `${value.slice(0, -2)}.x` : value);
}

/** What is wrong with a value in the place of an agent's id; undefined for one. */
export function agentIdProblem(value: unknown): string | undefined {
  if (typeof value === "string" && AGENT_ID.test(value)) return undefined;
  const lacksScheme = typeof value === "string" && AGENT_ID.test(AGENT_SCHEME + value);
  if (lacksScheme) return `lacks ${AGENT_SCHEME} in front: ${AGENT_SCHEME}${value}`;
  return "must be agent://<name>: at most 63 of a-z, 0-9, '.', '_', '-', no capital letters, a letter or digit first and last";
}
