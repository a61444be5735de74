import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import type { HttpAccess } from "./kit.ts";

export const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

export interface Posted {
  readonly sent: ClientRequest;
  readonly answer: Promise<IncomingMessage>;
}

/** A bare request, whose headers a browser would not let anybody choose, over a connection of its own. */
export function post({ url, token }: HttpAccess, body: unknown, headers: object = {}, path = "/mcp"): Posted {
  const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const given = { ...accept, authorization: `Bearer ${token}`, ...headers };
  const sent = request(new URL(path, url), { method: "POST", headers: given, agent: false });
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
  /** Resolves when the connection has ended at this side. */
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
  const gone = once(socket, "close").then(() => {});
  const stream = await answer;
  return { id, socket, body: () => bodyOf(stream), gone: () => gone };
}

/** Resolves when the server has read it. */
export async function cancel({ access, headers }: RawSession, requestId: number): Promise<void> {
  const message = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
  await bodyOf(await post(access, message, headers).answer);
}
