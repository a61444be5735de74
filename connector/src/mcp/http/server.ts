import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { discardBody, MAX_BODY_BYTES } from "./body.ts";
import { allowOrigin, answerPreflight } from "./cors.ts";
import { hasToken, isMeant } from "./guards.ts";
import { refuse } from "./refuse.ts";
import type { HttpSessions } from "./sessions.ts";

const PATH = "/mcp";
/** Whoever sends headers or a body slowly, or nothing at all, is disconnected (slowloris). In ms. */
const CONNECTION_OPTIONS = { headersTimeout: 5000, requestTimeout: 10_000, connectionsCheckingInterval: 1000 } as const;
const MAX_CONNECTIONS = 1024;
/**
 * Connections that have not shown the token: beyond it the oldest gives way, so that clients always find room. As many calls of one client may
 * begin at once, each over a connection that is a stranger's until its headers are read.
 */
const MAX_STRANGERS = 512;

const FOREIGN = "This Host or Origin is not served: relay mcp --http-name NAME names one beside loopback's.";
/** A stranger is not told which file it is. */
const NO_TOKEN =
  "Authorization: Bearer needs the token: relay mcp says on standard error, when it starts, which file has it.";

export interface HttpServerOptions {
  /** The address to listen on. */
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
  /** What clients call this machine, beside its loopback names. */
  readonly names: readonly string[];
  /** What clients send in `Authorization: Bearer`. */
  readonly token: string;
}

/** MCP's Streamable HTTP transport, for clients that have the token. */
export class McpHttpServer {
  readonly #sessions: HttpSessions;
  readonly #options: HttpServerOptions;
  /** Oldest first. */
  readonly #strangers = new Set<Socket>();
  #server: Server | undefined;

  constructor(sessions: HttpSessions, options: HttpServerOptions) {
    this.#sessions = sessions;
    this.#options = options;
  }

  /** @returns its address. Rejects when it cannot listen. */
  async start(): Promise<string> {
    const { host, port } = this.#options;
    const server = createServer(CONNECTION_OPTIONS, (request, response) => void this.#answer(request, response));
    server.maxConnections = MAX_CONNECTIONS;
    server.on("connection", (socket) => this.#admit(socket));
    this.#server = server.listen(port, host);
    await once(server, "listening");
    const name = host.includes(":") ? `[${host}]` : host;
    return `http://${name}:${(server.address() as AddressInfo).port}${PATH}`;
  }

  async stop(): Promise<void> {
    await this.#sessions.close();
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  #admit(socket: Socket): void {
    this.#strangers.add(socket);
    socket.once("close", () => this.#strangers.delete(socket));
    const [oldest] = this.#strangers;
    if (this.#strangers.size > MAX_STRANGERS) oldest?.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { names, token } = this.#options;
    const isClient = hasToken(request.headers, token);
    if (!isClient) discardBody(request, MAX_BODY_BYTES);
    if (!isMeant(request.headers, names)) return refuse(response, { status: 403, message: FOREIGN });
    if (request.url !== PATH) return refuse(response, { status: 404, message: `MCP is at ${PATH}.` });
    allowOrigin(request, response);
    if (request.method === "OPTIONS") return answerPreflight(response);
    if (!isClient) {
      return refuse(response, { status: 401, message: NO_TOKEN, headers: { "www-authenticate": "Bearer" } });
    }
    this.#strangers.delete(request.socket);
    await this.#sessions.handle(request, response).catch(() => response.destroy());
  }
}
