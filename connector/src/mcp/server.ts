import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import type { McpAgent } from "./agent.ts";
import { askAgent, replyTo } from "./conversations.ts";
import { INSTRUCTIONS } from "./instructions.ts";
import { listing } from "./listing.ts";
import { sendMessage, waitForMessages } from "./messages.ts";
import { checkPresence } from "./presence.ts";
import { approveSession, rejectSession, requestSession } from "./sessions.ts";
import { myStatus } from "./status.ts";
import { register, type Tool } from "./tool.ts";

type Transport = Parameters<McpServer["connect"]>[0];

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
const TOOL_LIST = listing(TOOLS);

/**
 * Serves the tools to the client on the transport. When the relay ends the connection for good, such as for a refused key, the
 * server stays and the tools return the reason.
 * @returns once it serves, with a promise of its end: that of the transport.
 */
export async function serve(agent: McpAgent, transport: Transport, version: string): Promise<{ ended: Promise<void> }> {
  const server = new McpServer(
    { name: "agent-relay", title: "Agent Relay", version },
    { capabilities: { logging: {} }, instructions: INSTRUCTIONS },
  );
  for (const tool of TOOLS) register(server, agent, tool);
  server.server.setRequestHandler(ListToolsRequestSchema, () => TOOL_LIST);
  const ended = Promise.withResolvers<void>();
  server.server.onclose = ended.resolve;
  await server.connect(transport);
  const unsubscribe = agent.connector.on("delivery", () => notifyWaiting(server, agent));
  return { ended: ended.promise.then(unsubscribe) };
}

/** A log message for hosts that show them. A call that waits gets the message itself, so nothing is logged then. */
function notifyWaiting(server: McpServer, { queue }: McpAgent): void {
  if (queue.isAwaited) return;
  const data = { event: "message_arrived", waiting: queue.size };
  server.sendLoggingMessage({ level: "info", logger: "relay", data }).catch(() => {});
}
