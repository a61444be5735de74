import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

/** Codes of errors of JSON-RPC 2.0. */
export const RPC = { parseError: -32_700, invalidRequest: -32_600, server: -32_000 } as const;

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly code?: number;
  readonly headers?: OutgoingHttpHeaders;
}

/** Answers with an error of JSON-RPC that belongs to no request; nothing of the request is repeated. */
export function refuse(response: ServerResponse, { status, message, code = RPC.server, headers }: Refusal): void {
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null });
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
}
