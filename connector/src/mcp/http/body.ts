import type { IncomingMessage } from "node:http";
import { isJSONRPCRequest, type RequestId } from "@modelcontextprotocol/sdk/types.js";
import { parseJson } from "../../parse-json.ts";
import { RPC } from "./refuse.ts";

/** Several times what an envelope can hold. */
export const MAX_BODY_BYTES = 262_144;
/** A client that writes on after a refusal finds the answer, not a reset, up to this many bytes. */
export const MAX_REFUSED_BYTES = 16_777_216;

/** A body that is refused. */
export class BodyError extends Error {
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The JSON of a request's body. What is left of a body that is refused stays unread. @throws {BodyError} */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw new BodyError(415, RPC.server, "Send the body without Content-Encoding.");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new BodyError(413, RPC.server, `A body has at most ${MAX_BODY_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return messagesIn(Buffer.concat(chunks).toString());
}

/**
 * Reads what is left of a body that nobody wants. The connection stays, so that its client finds the answer. Beyond `maxBytes`
 * the connection ends.
 */
export function discardBody(request: IncomingMessage, maxBytes: number): void {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBytes) request.destroy();
  });
}

/** The ids of the requests among its messages. */
export function requestIdsIn(body: unknown): RequestId[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.filter(isJSONRPCRequest).map(({ id }) => id);
}

function messagesIn(text: string): unknown {
  const body = parsed(text);
  if (!Array.isArray(body) || body.length > 0) return body;
  throw new BodyError(400, RPC.invalidRequest, "An empty batch is no message.");
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new BodyError(400, RPC.parseError, "The body is not JSON.");
  }
}
