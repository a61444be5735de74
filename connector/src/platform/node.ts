import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overTls } from "node:https";
import { WebSocket } from "ws";
import { MAX_RECEIVED_BYTES } from "../limits.ts";
import type { AttemptFailure, FailedRequest } from "../network-errors.ts";
import { VERSION } from "../version.ts";
import {
  type HttpRequest,
  type HttpResponse,
  NO_CODE,
  type PlatformWebSocket,
  type WebSocketEvents,
} from "./contract.ts";
import { Way } from "./tunnel.ts";

/** Some edges refuse a request without them. */
const HEADERS = {
  accept: "application/json, application/problem+json",
  "user-agent": `agent-relay-connector/${VERSION}`,
};

/** @param usesProxy whether the environment's proxy counts. */
export function openWebSocket(url: string, usesProxy: boolean, events: WebSocketEvents): PlatformWebSocket {
  const over = new AbortController();
  const way = new Way(url, usesProxy, over.signal);
  let isOpen = false;
  let failure: AttemptFailure | undefined;
  const websocket = new WebSocket(url, {
    headers: HEADERS,
    createConnection: way.connect as never,
    perMessageDeflate: false,
    maxPayload: MAX_RECEIVED_BYTES,
  });
  websocket.on("open", () => {
    isOpen = true;
    failure = undefined;
  });
  websocket.on("message", (data, isBinary) => isBinary || events.text(String(data)));
  websocket.on("unexpected-response", (_, { statusCode = 0, headers }) => {
    failure = { status: statusCode, headers };
    websocket.terminate();
  });
  // The library refuses one with wrong headers after this.
  websocket.on("upgrade", ({ statusCode = 0, headers }) => {
    failure = { status: statusCode, headers };
  });
  websocket.on("error", (error: FailedRequest) => {
    if (isOpen) websocket.terminate();
    else failure ??= way.failure(error);
  });
  websocket.on("close", (code) => {
    over.abort();
    events.closed(code || NO_CODE, failure);
  });
  return {
    send: (text) => websocket.readyState === WebSocket.OPEN && websocket.send(text),
    close: () => websocket.close(),
    cut: () => websocket.terminate(),
    get silence() {
      return way.silence;
    },
  };
}

/** Rejects with why there is no answer, or with the signal's reason. */
export async function request(
  url: string,
  usesProxy: boolean,
  { body, ...asked }: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const send = url.startsWith("https:") ? overTls : overHttp;
  const headers = { ...HEADERS, ...asked.headers };
  // Without an agent Node would name the default port in the header host.
  const defaultPort = send === overTls ? 443 : 80;
  const way = new Way(url, usesProxy, signal);
  const outgoing = send(url, { ...asked, headers, signal, defaultPort, createConnection: way.connect });
  outgoing.on("response", resolve);
  outgoing.on("error", (error) => reject((signal.aborted && way.silence) || way.failure(error)));
  // An answer that is none, such as 101, ends it without an error.
  outgoing.on("close", () => reject(new Error("no answer")));
  outgoing.end(body);
  const answer = await promise;
  return { status: answer.statusCode as number, headers: answer.headers, body: answer };
}
