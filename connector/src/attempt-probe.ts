import type { RelayError } from "./errors.ts";
import { ATTEMPT_PROBE_MS } from "./limits.ts";
import { networkErrorOf, unreachable, upgradeRefusal } from "./network-errors.ts";

/** What is used of node:http: this package compiles without Node's types. */
interface NodeHttp {
  get(url: URL, options: object): Request;
}

interface Request {
  on(event: "upgrade", listener: (response: unknown, socket: { destroy(): void }) => void): void;
  on(event: "response", listener: (response: { readonly statusCode?: number }) => void): void;
  on(event: "error", listener: (error: Error & { readonly code?: string }) => void): void;
  destroy(): void;
}

/**
 * Why a websocket could not be opened: the platform's tells nobody. Asks for the same upgrade once more, which has no effect at
 * the relay. Undefined when that one succeeds, and where there is no node:http, as in browsers. Never rejects.
 */
export async function probeAttempt(websocketUrl: string, stopped: AbortSignal): Promise<RelayError | undefined> {
  const url = new URL(websocketUrl.replace(/^ws/, "http"));
  const http = nodeHttp(url.protocol === "https:" ? "node:https" : "node:http");
  return http && (await probe(url, http, AbortSignal.any([stopped, AbortSignal.timeout(ATTEMPT_PROBE_MS)])));
}

function nodeHttp(name: string): NodeHttp | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => NodeHttp | undefined } };
  return process?.getBuiltinModule?.(name);
}

function probe(url: URL, http: NodeHttp, signal: AbortSignal): Promise<RelayError | undefined> {
  const { promise, resolve } = Promise.withResolvers<RelayError | undefined>();
  const key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
  const request = http.get(url, {
    agent: false,
    signal,
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": key,
    },
  });
  request.on("upgrade", (_, socket) => {
    socket.destroy();
    resolve(undefined);
  });
  request.on("response", ({ statusCode = 0 }) => resolve(unreachable(url, upgradeRefusal(statusCode, url))));
  request.on("error", (error) => {
    const failed = error.name === "AbortError" ? { code: "ETIMEDOUT" } : error;
    resolve(unreachable(url, networkErrorOf(failed), error));
  });
  return promise.finally(() => request.destroy());
}
