import { once } from "node:events";
import { finished, type Readable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Transport } from "../mcp/calls/client-transport.ts";
import { type HttpServerOptions, McpHttpServer } from "../mcp/http/server.ts";
import { HttpSessions } from "../mcp/http/sessions.ts";
import type { LateAgent } from "../mcp/late-agent.ts";
import { serve } from "../mcp/server.ts";
import { VERSION } from "../version.ts";
import { Failure } from "./failure.ts";
import type { Io } from "./io.ts";
import type { Reporter } from "./reporter.ts";

/** How `relay mcp` offers its tools to clients. */

const MAX_LINE_BYTES = 10_485_760;

export interface Listening extends HttpServerOptions {
  /** Of the token, for people. */
  readonly place: string;
}

/** Until standard input ends. @throws {Failure} `failed` for a line that no message can be as long as. */
export async function serveStdio(agent: LateAgent, reporter: Reporter, io: Io): Promise<void> {
  const transport = new StdioServerTransport(io.stdin, io.stdout, { maxBufferSize: MAX_LINE_BYTES });
  // Every answer that standard output does not take at once waits for it with a listener of its own.
  io.stdout.setMaxListeners(0);
  let isTooLong = false;
  transport.onerror = ({ message }) => {
    isTooLong ||= message.startsWith("ReadBuffer exceeded");
    if (!isTooLong) reporter.warn("A line on standard input is no message of JSON-RPC: it was ignored.");
  };
  const { ended } = await serve(agent, transport, VERSION);
  const signal = AbortSignal.any([io.signal, endOf(io.stdin)]);
  signal.addEventListener("abort", () => void transport.close());
  if (signal.aborted) await transport.close();
  await ended;
  if (isTooLong) throw new Failure("failed", `A line has over ${MAX_LINE_BYTES} bytes.`, "A message is far shorter.");
}

/** Until the signal. @throws {Failure} `failed` when it cannot listen. */
export async function serveHttp(
  agent: LateAgent,
  { place, ...options }: Listening,
  reporter: Reporter,
  io: Io,
): Promise<void> {
  const sessions = new HttpSessions((session) => {
    const { transport, calls } = session;
    return serve(agent, transport as Transport, VERSION, calls, () => session.isBehind);
  });
  const server = new McpHttpServer(sessions, options);
  const url = await server.start().catch(({ code }) => {
    throw new Failure("failed", `It cannot listen there (${code}).`, "Choose another port with --http.");
  });
  reporter.report("mcp_http", `MCP at ${url}; its token: ${place}`, { url, token_place: place }, "green");
  if (!io.signal.aborted) await once(io.signal, "abort");
  await server.stop();
}

/** Aborted when the stream ends or fails. */
function endOf(stdin: Readable): AbortSignal {
  const ended = new AbortController();
  finished(stdin, () => ended.abort());
  return ended.signal;
}
