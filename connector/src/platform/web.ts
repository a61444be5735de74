import { MAX_RECEIVED_CHARACTERS } from "../limits.ts";
import {
  type HttpRequest,
  type HttpResponse,
  NO_CODE,
  type OpenedWebSocket,
  type WebSocketEvents,
} from "./contract.ts";

/** The platform chooses proxies itself. */
export function openWebSocket(url: string, _usesProxy: boolean, events: WebSocketEvents): OpenedWebSocket {
  const over = Promise.withResolvers<number>();
  void over.promise.then((code) => events.closed(code || NO_CODE));
  let websocket: WebSocket;
  try {
    websocket = new WebSocket(url);
  } catch {
    // A page on https may not open ws.
    over.resolve(NO_CODE);
    return { send: () => {}, close: () => {}, cut: () => {} };
  }
  websocket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") return;
    if (data.length > MAX_RECEIVED_CHARACTERS) return over.resolve(NO_CODE);
    events.text(data);
  });
  websocket.addEventListener("close", ({ code }) => over.resolve(code));
  return {
    send: (text) => websocket.readyState === WebSocket.OPEN && websocket.send(text),
    close: () => websocket.close(),
    cut: () => over.resolve(NO_CODE),
  };
}

/** Rejects with why there is no answer, or with the signal's reason. */
export async function request(
  url: string,
  _usesProxy: boolean,
  asked: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse> {
  try {
    const { status, body } = await fetch(url, { ...asked, redirect: "manual", signal });
    return { status, body: chunksOf(body) };
  } catch (error) {
    // Some tell why there.
    throw (error as Error).cause ?? error;
  }
}

async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) return;
      yield value as Uint8Array;
    }
  } finally {
    reader?.cancel().catch(() => {});
  }
}
