import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { RelayError } from "../errors.ts";
import type { ConnectorState } from "../types.ts";
import type { McpAgent } from "./agent.ts";
import { connectionOf } from "./connection.ts";

/** An error in words for people: a RelayError, or one of whoever asks the relay over HTTP. */
interface Failure extends Error {
  readonly code: string;
  readonly hint: string;
}

/** What else was thrown may hold anything: it is not repeated. */
const UNEXPECTED = { code: "internal_error", message: "The tool failed.", hint: "Report it if it stays." };

export interface Tool<I extends z.ZodObject, O extends z.ZodObject> {
  /** snake_case. */
  readonly name: string;
  readonly title: string;
  /** For a model that knows nothing of the relay. */
  readonly description: string;
  readonly input: I;
  readonly output: O;
  readonly annotations: Required<Omit<ToolAnnotations, "title">>;
  /** What it throws becomes the tool's error, with its words when it is a RelayError or another Failure. */
  run(input: z.output<I>, agent: McpAgent, signal: AbortSignal): Promise<z.input<O>>;
  /** What a model is to read before the result. */
  preface?(output: z.input<O>): string;
}

export function register(server: McpServer, agent: McpAgent, tool: Tool<z.ZodObject, z.ZodObject>): void {
  const { name, title, description, input: inputSchema, output: outputSchema, annotations } = tool;
  const config = { title, description, inputSchema, outputSchema, annotations };
  server.registerTool(name, config, async (input, { signal }) => {
    try {
      const output = await tool.run(input, agent, signal);
      return succeeded(output, tool.preface?.(output));
    } catch (error) {
      return failed(error, agent.connector.state);
    }
  });
}

function succeeded(output: Record<string, unknown>, preface: string | undefined): CallToolResult {
  const texts = [preface, JSON.stringify(output)].filter((text) => text !== undefined);
  return { structuredContent: output, content: texts.map((text) => ({ type: "text", text })) };
}

/** Only in words: structured content would have to fit the schema of a success. */
function failed(error: unknown, state: ConnectorState): CallToolResult {
  const said = isFailure(error) ? errorOf(error) : UNEXPECTED;
  const text = JSON.stringify({ ...said, connection: connectionOf(state) });
  return { isError: true, content: [{ type: "text", text }] };
}

function isFailure(error: unknown): error is Failure {
  return error instanceof Error && "code" in error && "hint" in error;
}

function errorOf(error: Failure): object {
  const { code, message, hint } = error;
  if (!(error instanceof RelayError)) return { code, message, hint };
  return { code, message, hint, retry: error.retry, outcome: error.outcome, retry_after_ms: error.retryAfterMs };
}
