import type { Connector } from "../connector.ts";

/** What the tools use of a connector: the connection of an agent, this process's own or another's. */
export type AgentConnection = Pick<
  Connector,
  "agent" | "state" | "start" | "close" | "on" | "send" | "ask" | "requestSession" | "approve" | "reject"
>;
