import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { z } from "zod";
import { RelayError } from "../errors.ts";
import { membersOf } from "../frames.ts";
import { parseJson } from "../parse-json.ts";
import { printable, printableValues } from "../said-text.ts";
import type { McpAgent } from "./agent.ts";
import type { Call } from "./calls/call.ts";
import { connectionStateOf } from "./connection-state.ts";
import type { LateAgent } from "./late-agent.ts";
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
  /** It needs none, and begins none where the agent's has ended. */
  readonly isWithoutConnection?: boolean;
  /** What it throws becomes the tool's error; the texts of one with a code and a hint are passed on. */
  run(input: z.output<I>, agent: McpAgent, call: ToolCall): Promise<z.input<O>>;
  /** What it returns is signed: as structured content it stays as it is. */
  readonly isSigned?: boolean;
  /** A text for the model before the result. */
  preface?(output: z.input<O>): string | undefined;
}

type AnyTool = Tool<z.ZodObject, z.ZodObject>;

/** Never rejects: that there is no agent is an error of the tool, too. */
export async function runTool(tool: AnyTool, given: unknown, late: LateAgent, call: ToolCall): Promise<CallToolResult> {
  try {
    const agent = tool.isWithoutConnection ? late.present() : late.connecting();
    return await runAs(await agent, tool, given, call);
  } catch (error) {
    // Its hint is for whoever starts the process, who alone can mend it.
    return failed(
      errorOf(error, ({ hint }) => hint),
      { status: "idle" },
    );
  }
}

/** Never rejects: what is wrong with the arguments is an error of the tool, so that a model can mend it. */
async function runAs(agent: McpAgent, tool: AnyTool, given: unknown, call: ToolCall): Promise<CallToolResult> {
  const input = tool.input.safeParse(given ?? {}, { reportInput: true });
  if (!input.success) return failed(argumentErrorOf(input.error), connectionStateOf(agent));
  try {
    const output = await tool.run(input.data, agent, call);
    return succeeded(output, tool);
  } catch (error) {
    return failed(errorOf(finalOf(error, agent)), connectionStateOf(agent));
  }
}

/** Where there is no connection, that is the reason why nothing was sent, whatever gave up first. */
function finalOf(error: unknown, { connector: { state }, endedBy }: McpAgent): unknown {
  if (!(error instanceof RelayError) || error.outcome !== "refused") return error;
  const { code } = error;
  // Of a connection that is tried by itself, `unreachable` has the reason in its text.
  const isOfNoConnection =
    code === "closed" || code === "timeout" || (code === "unreachable" && state.status !== "reconnecting");
  if (!isOfNoConnection) return error;
  return (state.status === "closed" || state.status === "reconnecting" ? state.error : endedBy) ?? error;
}

/**
 * What others wrote could say to a model, in characters that nobody sees, what its user does not read: they are escaped. The text
 * is of the same value; structured content that has any shows them as texts.
 */
function succeeded(output: Record<string, unknown>, { isSigned = false, preface }: AnyTool): CallToolResult {
  const json = JSON.stringify(output);
  const text = printable(json);
  const structuredContent = isSigned || text === json ? output : membersOf(parseJson(printableValues(json)));
  const texts = [preface?.(output), text].filter((text) => text !== undefined);
  return { structuredContent, content: texts.map((text) => ({ type: "text", text })) };
}

/** As text only: structured content would have to match the schema of a success. */
function failed(error: object, connection: object): CallToolResult {
  const text = printable(JSON.stringify({ ...error, connection }));
  return { isError: true, content: [{ type: "text", text }] };
}
