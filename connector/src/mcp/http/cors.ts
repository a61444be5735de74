import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Lets a page of an origin that is served read the answers, such as an MCP client in a browser on this machine; it needs the
 * token all the same.
 */
export function allowOrigin({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
  response.setHeader("vary", "origin");
  if (origin === undefined) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", "mcp-session-id");
}

/** Answers what a browser asks before it sends anything, and without the token. */
export function answerPreflight(response: ServerResponse): void {
  const allowed = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id, mcp-protocol-version, mcp-session-id",
  };
  response.writeHead(204, allowed).end();
}
