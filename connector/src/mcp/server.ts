import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { z } from "zod";
import type { Connector } from "../connector.ts";
import { McpAgent, type PresenceOf } from "./agent.ts";
import { askAgent, replyTo } from "./conversations.ts";
import { INSTRUCTIONS } from "./instructions.ts";
import { sendMessage, waitForMessages } from "./messages.ts";
import { checkPresence } from "./presence.ts";
import { approveSession, rejectSession, requestSession } from "./sessions.ts";
import { myStatus } from "./status.ts";
import { register, type Tool } from "./tool.ts";

const TOOLS: readonly Tool<z.ZodObject, z.ZodObject>[] = [
  sendMessage,
  askAgent,
  waitForMessages,
  replyTo,
  requestSession,
  approveSession,
  rejectSession,
  checkPresence,
  myStatus,
];

export interface ServeOptions {
  /** Not started. */
  readonly connector: Connector;
  readonly presenceOf: PresenceOf;
  readonly version: string;
  readonly transport: Parameters<McpServer["connect"]>[0];
  /** Ends the server; so does the end of the transport. */
  readonly signal: AbortSignal;
}

/**
 * Serves the tools to the client on the transport until it disconnects, then closes the connector. When the relay ends the
 * connection for good before that, such as for a refused key, the server stays and the tools return the reason.
 */
export async function serve({ connector, presenceOf, version, transport, signal }: ServeOptions): Promise<void> {
  const agent = new McpAgent(connector, presenceOf);
  const server = new McpServer(
    { name: "agent-relay", title: "Agent Relay", version },
    { capabilities: { logging: {} }, instructions: INSTRUCTIONS },
  );
  for (const tool of TOOLS) register(server, agent, tool);
  const closed = new Promise<void>((resolve) => {
    server.server.onclose = resolve;
  });
  await server.connect(transport);
  agent.start();
  connector.on("delivery", () => notifyWaiting(server, agent));
  signal.addEventListener("abort", () => void server.close());
  if (signal.aborted) await server.close();
  await closed;
  await connector.close();
}

/** A log message for hosts that show them. A call that waits gets the message itself, so nothing is logged then. */
function notifyWaiting(server: McpServer, { queue }: McpAgent): void {
  if (queue.isAwaited) return;
  const data = { event: "message_arrived", waiting: queue.size };
  server.sendLoggingMessage({ level: "info", logger: "relay", data }).catch(() => {});
}
