/**
 * An agent id, `agent://<name>`: ASCII lower case only, so that no two ids look alike and none can contain a Redis
 * pattern, a hash tag or a channel separator. Source: docs/protocol.md#agents.
 */
export const AGENT_ID_PATTERN = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

export const AGENT_SCHEME = "agent://";

/** An agent id, or the namespace of a team: a prefix that ends with `.*`. */
export const AGENT_PATTERN_PATTERN =
  /^agent:\/\/(?:[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?|[a-z0-9][a-z0-9._-]{0,60}\.\*)$/;

/** The agent id of a name. */
export function agentNamed(name: string): string {
  return AGENT_SCHEME + name;
}

/** The name of an agent id. */
export function nameOf(agent: string): string {
  return agent.slice(AGENT_SCHEME.length);
}
