import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, type RequestOptions, request, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import type { HttpAccess } from "./kit.ts";

export const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

/** A bare connection. Nobody minds its errors. */
export function dial({ url }: Pick<HttpAccess, "url">): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname).on("error", () => {});
}

export async function closeOf(socket: Socket): Promise<void> {
  await new Promise((closed) => socket.once("close", closed));
}

/** What the server has of a connection. */
export interface ServerSide {
  readonly socket: Socket;
  readonly server: Server;
}

const REQUESTS = "http.server.request.start";

/** Resolves when the server has read the head of the next request of the connection. */
export async function serverSideOf(client: Socket): Promise<ServerSide> {
  const { promise, resolve } = Promise.withResolvers<ServerSide>();
  const begun = (request: unknown) => {
    const side = request as ServerSide;
    if (side.socket.remotePort === client.localPort) resolve(side);
  };
  subscribe(REQUESTS, begun);
  return await promise.finally(() => unsubscribe(REQUESTS, begun));
}

export interface Posted {
  readonly sent: ClientRequest;
  readonly answer: Promise<IncomingMessage>;
}

/** A bare request, whose headers a browser would not let anybody choose, over a connection of its own. */
export function post(
  { url, token }: HttpAccess,
  body: unknown,
  headers: object = {},
  path = "/mcp",
  over: RequestOptions = { agent: false },
): Posted {
  const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const given = { ...accept, authorization: `Bearer ${token}`, ...headers };
  const sent = request(new URL(path, url), { method: "POST", headers: given, ...over });
  sent.on("error", () => {}).end(JSON.stringify(body));
  return { sent, answer: once(sent, "response").then(([answer]) => answer as IncomingMessage) };
}

export async function bodyOf(answer: IncomingMessage): Promise<string> {
  return (await answer.toArray()).join("");
}

/** An initialized session, without the SDK's client. */
export interface RawSession {
  readonly access: HttpAccess;
  readonly id: string;
  readonly headers: object;
  nextId: number;
}

export async function begin(access: HttpAccess): Promise<RawSession> {
  const answer = await post(access, { jsonrpc: "2.0", id: 0, ...INITIALIZE }).answer;
  await bodyOf(answer);
  const id = String(answer.headers["mcp-session-id"]);
  return { access, id, headers: { "mcp-session-id": id }, nextId: 1 };
}

export interface RawCall {
  readonly id: number;
  readonly socket: Socket;
  /** The whole answer, once its stream has ended. */
  body(): Promise<string>;
  /** Resolves when the connection has ended at both sides. */
  gone(): Promise<void>;
}

/** Calls a tool; resolves when the server has begun to answer: it has read the call. */
export async function callTool(
  session: RawSession,
  name: string,
  input: object,
  id = session.nextId++,
): Promise<RawCall> {
  const message = { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: input } };
  const { sent, answer } = post(session.access, message, session.headers);
  const socket = await new Promise<Socket>((resolve) => sent.once("socket", resolve));
  const { socket: server } = await serverSideOf(socket);
  const gone = Promise.all([socket, server].map(closeOf));
  const stream = await answer;
  return { id, socket, body: () => bodyOf(stream), gone: async () => void (await gone) };
}

/** Resolves when the server has read it. */
export async function cancel({ access, headers }: RawSession, requestId: number): Promise<void> {
  const message = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
  await bodyOf(await post(access, message, headers).answer);
}
