import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { RelayError } from "../errors.ts";
import type { ConnectorState } from "../types.ts";
import type { McpAgent } from "./agent.ts";
import type { Call } from "./calls/call.ts";
import { connectionStateOf } from "./connection-state.ts";
import { argumentErrorOf, errorOf } from "./tool-errors.ts";

/** What a tool knows of the request that it answers. */
export interface ToolCall {
  /** Aborted when the client cancels it. */
  readonly signal: AbortSignal;
  /** Whether its answer reaches the client. */
  readonly call: Call;
}

export interface Tool<I extends z.ZodObject, O extends z.ZodObject> {
  /** snake_case. */
  readonly name: string;
  readonly title: string;
  /** For a model that knows nothing of the relay. */
  readonly description: string;
  readonly input: I;
  readonly output: O;
  /** What is left out has MCP's default: not read-only, destructive, not idempotent, open world. */
  readonly annotations: Omit<ToolAnnotations, "title">;
  /** What it throws becomes the tool's error; the texts of one with a code and a hint are passed on. */
  run(input: z.output<I>, agent: McpAgent, call: ToolCall): Promise<z.input<O>>;
  /** A text for the model before the result. */
  preface?(output: z.input<O>): string;
}

/** Never rejects: what is wrong with the arguments is an error of the tool, too, so that a model can mend it. */
export async function runTool(
  tool: Tool<z.ZodObject, z.ZodObject>,
  given: unknown,
  agent: McpAgent,
  call: ToolCall,
): Promise<CallToolResult> {
  const input = tool.input.safeParse(given ?? {});
  if (!input.success) return failed(argumentErrorOf(input.error), agent.connector.state);
  try {
    const output = await tool.run(input.data, agent, call);
    return succeeded(output, tool.preface?.(output));
  } catch (error) {
    const { state } = agent.connector;
    return failed(errorOf(finalOf(error, state)), state);
  }
}

/** Where the connection has ended for good, its end is the reason, whatever gave up first. */
function finalOf(error: unknown, state: ConnectorState): unknown {
  const isOfNoConnection = error instanceof RelayError && (error.code === "closed" || error.code === "timeout");
  const isFinal = state.status === "closed" && state.error !== undefined;
  return isOfNoConnection && isFinal && error.outcome === "refused" ? state.error : error;
}

function succeeded(output: Record<string, unknown>, preface: string | undefined): CallToolResult {
  const texts = [preface, JSON.stringify(output)].filter((text) => text !== undefined);
  return { structuredContent: output, content: texts.map((text) => ({ type: "text", text })) };
}

/** As text only: structured content would have to match the schema of a success. */
function failed(error: object, state: ConnectorState): CallToolResult {
  const text = JSON.stringify({ ...error, connection: connectionStateOf(state) });
  return { isError: true, content: [{ type: "text", text }] };
}
