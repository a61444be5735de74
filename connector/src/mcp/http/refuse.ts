import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

/** Answers with an error of JSON-RPC that belongs to no request; nothing of the request is repeated. */
export function refuse(response: ServerResponse, status: number, message: string, headers?: OutgoingHttpHeaders): void {
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null });
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
}
