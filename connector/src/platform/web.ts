import { MAX_RECEIVED_BYTES } from "../limits.ts";
import {
  type HttpRequest,
  type HttpResponse,
  NO_CODE,
  type PlatformWebSocket,
  type WebSocketEvents,
} from "./contract.ts";

/** The platform chooses proxies itself. */
export function openWebSocket(url: string, _usesProxy: boolean, events: WebSocketEvents): PlatformWebSocket {
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
    if (data.length <= MAX_RECEIVED_BYTES) return events.text(data);
    over.resolve(NO_CODE);
    websocket.close();
  });
  websocket.addEventListener("close", ({ code }) => over.resolve(code));
  return {
    send: (text) => websocket.readyState === WebSocket.OPEN && websocket.send(text),
    close: () => websocket.close(),
    cut: () => {
      over.resolve(NO_CODE);
      websocket.close();
    },
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
    const { status, headers, body } = await fetch(url, { ...asked, redirect: "manual", signal });
    return { status, headers: Object.fromEntries(headers), body: chunksOf(body) };
  } catch (error) {
    // Where the platform tells why, it is the cause.
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
