import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { refuse } from "./refuse.ts";

const MAX_SESSIONS = 16;
/** Several times what an envelope can hold. */
const MAX_BODY_BYTES = 262_144;

/** Serves the tools to the client on the transport. */
type Serve = (transport: StreamableHTTPServerTransport) => Promise<unknown>;

/** The sessions of MCP's clients. One more than MAX_SESSIONS ends the one whose last request is longest ago. */
export class HttpSessions {
  readonly #serve: Serve;
  /** In the order of their last requests. */
  readonly #transports = new Map<string, StreamableHTTPServerTransport>();

  constructor(serve: Serve) {
    this.#serve = serve;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers["mcp-session-id"];
    if (id === undefined) return await this.#begin(request, response);
    const transport = this.#transports.get(String(id));
    if (transport === undefined) return refuse(response, 404, "No such session: begin another.");
    this.#use(String(id), transport);
    await transport.handleRequest(request, response);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#transports.values()].map((transport) => transport.close()));
  }

  /** What is no initialization is refused by the transport, and leaves no session. */
  async #begin(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => this.#use(id, transport),
      maxRequestBodySize: MAX_BODY_BYTES,
    });
    transport.onclose = () => this.#transports.delete(transport.sessionId ?? "");
    await this.#serve(transport);
    await transport.handleRequest(request, response);
    if (transport.sessionId === undefined) await transport.close();
  }

  #use(id: string, transport: StreamableHTTPServerTransport): void {
    this.#transports.delete(id);
    this.#transports.set(id, transport);
    const [oldest] = this.#transports.values();
    if (this.#transports.size > MAX_SESSIONS) void oldest?.close();
  }
}
