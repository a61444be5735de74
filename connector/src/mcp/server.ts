import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ErrorCode, ListToolsRequestSchema, type ListToolsResult, McpError } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { LateAgent, McpAgent } from "./agent.ts";
import { Calls, ClientTransport, type Transport } from "./calls.ts";
import { askAgent, replyTo, sendMessage, waitForMessages } from "./messages.ts";
import { approveSession, rejectSession, requestSession, sessionReceipt } from "./sessions.ts";
import { checkPresence, myStatus } from "./status.ts";
import { INSTRUCTIONS, runTool, type Tool } from "./tool.ts";

const TOOLS: readonly Tool<z.ZodObject, z.ZodObject>[] = [
  sendMessage,
  askAgent,
  waitForMessages,
  replyTo,
  requestSession,
  approveSession,
  rejectSession,
  sessionReceipt,
  checkPresence,
  myStatus,
];
const TOOL_LIST = listing(TOOLS);

/** Loose: what it lacks is then refused as invalid params; a schema that does not match is an internal error to the SDK. */
const CallTool = z.looseObject({ method: z.literal("tools/call"), params: z.unknown() });
const CallParams = z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()).optional() });

/**
 * Serves the tools to the client on the transport. When there is no agent, such as without a readable key, or its connection has
 * ended, the server stays, and the tools try again and return the reason.
 * @param isBehind whether the client reads less than it is told, where the transport does not wait for that.
 * @returns once it serves, with a promise of its end: that of the transport.
 */
export async function serve(
  agent: LateAgent,
  transport: Transport,
  version: string,
  calls: Calls = new Calls(),
  isBehind: () => boolean = () => false,
): Promise<{ ended: Promise<void> }> {
  const mcp = new McpServer(
    { name: "agent-relay", title: "Agent Relay", version },
    { capabilities: { logging: {}, tools: {} }, instructions: INSTRUCTIONS },
  );
  const { server } = mcp;
  server.setRequestHandler(ListToolsRequestSchema, () => TOOL_LIST);
  server.setRequestHandler(CallTool, async ({ params }, { signal, requestId }) => {
    const { name, arguments: given } = CallParams.parse(params);
    const tool = TOOLS.find((candidate) => candidate.name === name);
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, "No such tool: tools/list has their names.");
    return await runTool(tool, given, agent, { signal, call: calls.of(requestId) });
  });
  const ended = Promise.withResolvers<void>();
  server.onclose = ended.resolve;
  await mcp.connect(new ClientTransport(transport, calls));
  const unsubscribe = agent.onDelivery(notifying(mcp, isBehind));
  return { ended: ended.promise.then(unsubscribe) };
}

/**
 * A log message for hosts that show them. A call that waits gets the message itself, so nothing is logged then. For a client that
 * does not read at most one is kept: how often one is due is for others to choose.
 */
function notifying(server: McpServer, isBehind: () => boolean): (agent: McpAgent) => void {
  let isUnread = false;
  return ({ queue }) => {
    if (queue.isAwaited || isUnread || isBehind()) return;
    isUnread = true;
    const data = { event: "message_arrived", waiting: queue.size };
    const sent = server.sendLoggingMessage({ level: "info", logger: "relay", data });
    sent.catch(() => {}).finally(() => (isUnread = false));
  };
}

type Schema = z.core.JSONSchema.BaseSchema;
type Listed = ListToolsResult["tools"][number];

/**
 * What tools/list answers. It stands in every conversation of a model, used or not, and is therefore kept short: of results it
 * names the members, and which of them are lists or objects, and it says nothing that MCP takes for granted.
 */
function listing(tools: readonly Tool<z.ZodObject, z.ZodObject>[]): ListToolsResult {
  return { tools: tools.map(listed) };
}

function listed({ name, title, description, input, output, annotations }: Tool<z.ZodObject, z.ZodObject>): Listed {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: "input" });
  const { properties = {} } = z.toJSONSchema(output);
  const members = Object.entries(properties).map(([member, schema]) => [member, outlined(schema as Schema)]);
  const outputSchema = { type: "object", properties: Object.fromEntries(members) };
  return { name, title, description, inputSchema, outputSchema, annotations } as Listed;
}

function outlined({ type, description, items }: Schema): Schema {
  return {
    ...((type === "array" || type === "object") && { type }),
    ...(description && { description }),
    ...(items && { items: namesIn(items as Schema) }),
  };
}

/** Of what a list holds: the members. */
function namesIn({ properties = {} }: Schema): Schema {
  return { properties: Object.fromEntries(Object.keys(properties).map((member) => [member, {}])) };
}
