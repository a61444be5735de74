export const AGENT_SCHEME = "agent://";

/** An agent id: `agent://` and a name. Source: docs/protocol.md#agents. */
export const AGENT_ID = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;
