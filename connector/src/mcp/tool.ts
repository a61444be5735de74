import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import type { RelayError, Retry } from "../errors.ts";
import type { ConnectorState } from "../types.ts";
import type { McpAgent } from "./agent.ts";
import { connectionStateOf } from "./connection-state.ts";

/** An error with texts for people: a RelayError, or an error of PresenceOf. */
interface Failure extends Error {
  readonly code: string;
  readonly hint: string;
  readonly retry?: Retry | undefined;
  readonly outcome?: RelayError["outcome"] | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** Any other error may contain anything: it is not passed on. */
const UNEXPECTED = { code: "internal_error", message: "The tool failed.", hint: "If it happens again, report it." };

/** Where the library's hint names an option that tools do not have. */
const HINTS: Readonly<Record<string, string>> = {
  target_not_online: "Send it again when the target is online; wait_online_seconds waits for that.",
  superseded_elsewhere: "A person stops the other, or starts relay mcp with --take-over, which ends it.",
};

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
  /** What it throws becomes the tool's error; the texts of a Failure are passed on. */
  run(input: z.output<I>, agent: McpAgent, signal: AbortSignal): Promise<z.input<O>>;
  /** A text for the model before the result. */
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

/** As text only: structured content would have to match the schema of a success. */
function failed(error: unknown, state: ConnectorState): CallToolResult {
  const details = isFailure(error) ? errorOf(error) : UNEXPECTED;
  const text = JSON.stringify({ ...details, connection: connectionStateOf(state) });
  return { isError: true, content: [{ type: "text", text }] };
}

function isFailure(error: unknown): error is Failure {
  return error instanceof Error && "code" in error && "hint" in error;
}

function errorOf(error: Failure): object {
  const { code, message, retry, outcome, retryAfterMs: retry_after_ms } = error;
  return { code, message, hint: HINTS[code] ?? error.hint, retry, outcome, retry_after_ms };
}
