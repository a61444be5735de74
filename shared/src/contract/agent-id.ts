import { z } from "zod";

/**
 * An agent id, `agent://<name>`: ASCII lower case only, so that no two ids look alike and none can carry a Redis
 * pattern, a hash tag or a channel separator. Source: protocol, section 1.
 */
export const AGENT_ID_PATTERN = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

export const AgentId = z
  .string()
  .regex(AGENT_ID_PATTERN, "must be agent://<name>: a-z, 0-9, '.', '_', '-'")
  .meta({
    id: "AgentId",
    description: "Agent id: agent://<name>, ASCII lower case.",
    examples: ["agent://alice"],
  });

/** True when `text` is an agent id. */
export function isAgentId(text: string): boolean {
  return AGENT_ID_PATTERN.test(text);
}
