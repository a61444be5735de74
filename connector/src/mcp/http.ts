import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest, isJSONRPCRequest, type RequestId } from "@modelcontextprotocol/sdk/types.js";
import { parseJson } from "../parse-json.ts";
import { Calls } from "./calls.ts";

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

const MAX_SESSIONS = 16;

/** Serves the tools to the client of the session. */
type Serve = (session: HttpSession) => Promise<unknown>;

/**
 * The sessions of MCP's clients. One more than MAX_SESSIONS ends the one whose last request is longest ago, but none that has
 * an open call.
 */
export class HttpSessions {
  readonly #serve: Serve;
  /** In the order of their last requests. */
  readonly #sessions = new Map<string, HttpSession>();

  constructor(serve: Serve) {
    this.#serve = serve;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers["mcp-session-id"];
    const session = this.#sessions.get(String(id));
    if (session !== undefined) this.#use(String(id), session);
    else if (id !== undefined)
      return refuse(response, { status: 404, message: "No such session: initialize another." });
    if (session !== undefined && request.method !== "POST") return await session.handle(request, response);
    try {
      const body = request.method === "POST" ? await readBody(request) : undefined;
      await (session === undefined ? this.#begin(request, response, body) : session.post(request, response, body));
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      discardBody(request, MAX_REFUSED_BYTES);
      const { status, code, message } = error;
      refuse(response, { status, code, message });
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #begin(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    if (![body].flat().some(isInitializeRequest)) {
      return refuse(response, {
        status: 400,
        message: "Send initialize first, then the Mcp-Session-Id of its answer.",
      });
    }
    if (!this.#hasRoom()) return refuse(response, { status: 503, message: "Every session has an open call: end one." });
    const session = new HttpSession((id) => this.#use(id, session));
    session.transport.onclose = () => this.#sessions.delete(session.transport.sessionId ?? "");
    await this.#serve(session);
    await session.post(request, response, body);
    if (session.transport.sessionId === undefined) await session.close();
  }

  /** Ends sessions where they are as many as may be. */
  #hasRoom(): boolean {
    while (this.#sessions.size >= MAX_SESSIONS) {
      const [id, idle] = [...this.#sessions].find(([, { calls }]) => !calls.areOpen) ?? [];
      if (id === undefined) return false;
      this.#sessions.delete(id);
      void idle?.close();
    }
    return true;
  }

  #use(id: string, session: HttpSession): void {
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
  }
}

/** A session of one MCP client. */
class HttpSession {
  readonly calls = new Calls();
  readonly transport: StreamableHTTPServerTransport;

  /** Of the GET that is open: the transport has one. */
  #stream: ServerResponse | undefined;

  /** @param began called with its id, once it is initialized. */
  constructor(began: (id: string) => void) {
    this.transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: began });
  }

  /** Whether its client does not read what belongs to no call. */
  get isBehind(): boolean {
    return this.#stream?.writableNeedDrain === true;
  }

  /** A GET, whose stream carries what belongs to no call, or a DELETE. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET" && this.#stream === undefined) {
      this.#stream = response;
      response.once("close", () => (this.#stream = undefined));
    }
    await this.transport.handleRequest(request, response);
  }

  async post(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    const ids = requestIdsIn(body);
    if (new Set(ids).size < ids.length || ids.some((id) => this.calls.isOpen(id))) {
      const message = "That id is of a call that is still open: every call of a session has its own.";
      return refuse(response, { status: 400, message, code: RPC.invalidRequest });
    }
    const calls = ids.map((id) => this.calls.open(id));
    response.once("close", () => {
      if (response.statusCode !== 200) for (const id of ids) this.calls.cancel(id);
      if (!response.writableFinished) for (const call of calls) call.abandon();
    });
    void Promise.all(calls.map(({ over }) => over)).then(() => this.#endStreamOf(ids));
    await this.transport.handleRequest(request, response, body);
  }

  async close(): Promise<void> {
    await this.transport.close();
  }

  /** What was cancelled has no answer: its stream ends without. The transport forgets a request with its answer only. */
  #endStreamOf(ids: readonly RequestId[]): void {
    for (const id of ids) {
      this.transport.closeSSEStream(id);
      const error = { code: RPC.server, message: "Cancelled." };
      this.transport.send({ jsonrpc: "2.0", id, error }).catch(() => {});
    }
  }
}

/** Several times what an envelope can hold. */
const MAX_BODY_BYTES = 262_144;
/** A client that writes on after a refusal finds the answer, not a reset, up to this many bytes. */
const MAX_REFUSED_BYTES = 16_777_216;

/** A body that is refused. */
class BodyError extends Error {
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The JSON of a request's body. What is left of a body that is refused stays unread. @throws {BodyError} */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw new BodyError(415, RPC.server, "Send the body without Content-Encoding.");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new BodyError(413, RPC.server, `A body has at most ${MAX_BODY_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return messagesIn(Buffer.concat(chunks).toString());
}

/**
 * Reads what is left of a body that nobody wants. The connection stays, so that its client finds the answer. Beyond `maxBytes`
 * the connection ends.
 */
function discardBody(request: IncomingMessage, maxBytes: number): void {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) request.destroy();
  });
}

/** The ids of the requests among its messages. */
function requestIdsIn(body: unknown): RequestId[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.filter(isJSONRPCRequest).map(({ id }) => id);
}

function messagesIn(text: string): unknown {
  const body = parsed(text);
  if (!Array.isArray(body) || body.length > 0) return body;
  throw new BodyError(400, RPC.invalidRequest, "An empty batch is no message.");
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new BodyError(400, RPC.parseError, "The body is not JSON.");
  }
}

/** Who may speak to the server over HTTP. */

const LOOPBACK: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/** A name or an address, and a port: nothing that a URL could have beside. */
const AUTHORITY = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;
const PAGE = /^https?:\/\/(.+)$/;

/**
 * False for a page that got here by DNS rebinding, whose name stands in `Host`, and for a page of a foreign origin.
 * @param names beside loopback's.
 */
function isMeant({ host = "", origin }: IncomingHttpHeaders, names: readonly string[]): boolean {
  const served = [...LOOPBACK, ...names].map((name) => name.toLowerCase());
  const isOurs = (authority: string) => served.includes(AUTHORITY.exec(authority)?.[1]?.toLowerCase() ?? "");
  return isOurs(host) && (origin === undefined || isOurs(PAGE.exec(origin)?.[1] ?? ""));
}

/** Compares digests, in a time that tells nothing about the token. */
function hasToken({ authorization = "" }: IncomingHttpHeaders, token: string): boolean {
  const [, given = ""] = /^Bearer +([^ ]+)$/i.exec(authorization) ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/**
 * Lets a page of an origin that is served read the answers, such as an MCP client in a browser on this machine; it needs the
 * token all the same.
 */
function allowOrigin({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
  response.setHeader("vary", "origin");
  if (origin === undefined) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", "mcp-session-id");
}

/** Answers what a browser asks before it sends anything, and without the token. */
function answerPreflight(response: ServerResponse): void {
  const allowed = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id, mcp-protocol-version, mcp-session-id",
  };
  response.writeHead(204, allowed).end();
}

/** Codes of errors of JSON-RPC 2.0. */
const RPC = { parseError: -32_700, invalidRequest: -32_600, server: -32_000 } as const;

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code?: number;
  readonly headers?: OutgoingHttpHeaders;
}

/** Answers with an error of JSON-RPC that belongs to no request; nothing of the request is repeated. */
function refuse(response: ServerResponse, { status, message, code = RPC.server, headers }: Refusal): void {
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null });
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
}
