import { z } from "zod";

/**
 * An agent id, `agent://<name>`: ASCII lower case only, so that no two ids look alike and none can contain a Redis
 * pattern, a hash tag or a channel separator. Source: docs/protocol.md#agents.
 */
export const AGENT_ID_PATTERN = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

const SCHEME = "agent://";

/** An agent id less its scheme, as it stands in a path. */
export const AgentName = z
  .string()
  .regex(
    new RegExp(AGENT_ID_PATTERN.source.replace("agent:\\/\\/", "")),
    "must be the name of an agent: a-z, 0-9, '.', '_', '-'",
  )
  .meta({ id: "AgentName", description: "An agent id without agent://.", examples: ["bob"] });

/** The agent id of a name. */
export function agentNamed(name: string): string {
  return SCHEME + name;
}

/** The name of an agent id. */
export function nameOf(agent: string): string {
  return agent.slice(SCHEME.length);
}

/** The agent that examples ask for; agent://alice asks. */
export const EXAMPLE_TARGET = "agent://bob";

/** An agent id, or the namespace of a team: a prefix that ends with `.*`. */
export const AGENT_PATTERN_PATTERN =
  /^agent:\/\/(?:[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?|[a-z0-9][a-z0-9._-]{0,60}\.\*)$/;

export const AgentId = z
  .string()
  .regex(AGENT_ID_PATTERN, "must be agent://<name>: a-z, 0-9, '.', '_', '-'")
  .meta({
    id: "AgentId",
    description: "Agent id: agent://<name>, ASCII lower case.",
    examples: ["agent://alice"],
  });
