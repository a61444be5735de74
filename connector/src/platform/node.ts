import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overTls } from "node:https";
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import { MAX_RECEIVED_BYTES } from "../limits.ts";
import type { AttemptFailure, FailedRequest } from "../network-errors.ts";
import {
  type HttpRequest,
  type HttpResponse,
  NO_CODE,
  type PlatformWebSocket,
  type WebSocketEvents,
} from "./contract.ts";
import { connectionTo } from "./proxy.ts";

/** As Node calls what makes its connections. */
type Connect = (options: unknown, connected: (error: Error | null, connection: Duplex) => void) => undefined;

/** @param usesProxy whether the environment's proxy counts. */
export function openWebSocket(url: string, usesProxy: boolean, events: WebSocketEvents): PlatformWebSocket {
  const over = new AbortController();
  let isOpen = false;
  let failure: AttemptFailure | undefined;
  const websocket = new WebSocket(url, {
    createConnection: connect(url, usesProxy, over.signal) as never,
    perMessageDeflate: false,
    maxPayload: MAX_RECEIVED_BYTES,
  });
  websocket.on("open", () => {
    isOpen = true;
  });
  websocket.on("message", (data, isBinary) => isBinary || events.text(String(data)));
  websocket.on("unexpected-response", (_, { statusCode = 0, headers }) => {
    failure = { status: statusCode, headers };
    websocket.terminate();
  });
  websocket.on("error", (error: FailedRequest) => {
    if (isOpen) websocket.terminate();
    else failure ??= error;
  });
  websocket.on("close", (code) => {
    over.abort();
    events.closed(code || NO_CODE, failure);
  });
  return {
    send: (text) => websocket.readyState === WebSocket.OPEN && websocket.send(text),
    close: () => websocket.close(),
    cut: () => websocket.terminate(),
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
  const outgoing = send(url, { ...asked, signal, createConnection: connect(url, usesProxy, signal) });
  outgoing.on("response", resolve).on("error", reject).end(body);
  const answer = await promise;
  return { status: answer.statusCode as number, body: answer };
}

function connect(url: string, usesProxy: boolean, signal: AbortSignal): Connect {
  const environment = usesProxy ? process.env : undefined;
  return (_, connected) => {
    connectionTo(new URL(url), environment, signal).then(
      (connection) => connected(null, connection),
      (error) => connected(error, undefined as never),
    );
    return undefined;
  };
}
