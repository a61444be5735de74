import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { Calls } from "../calls/calls.ts";
import { requestIdsIn } from "./body.ts";
import { RPC, refuse } from "./refuse.ts";

/** A session of one MCP client. */
export class HttpSession {
  readonly calls = new Calls();
  readonly transport: StreamableHTTPServerTransport;

  /** Of the GET that is open: the transport has one. */
  #stream: ServerResponse | undefined;

  /** @param began called with its id, once it is initialized. */
  constructor(began: (id: string) => void) {
    this.transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: began });
  }

  /** Whether its client does not read what belongs to no call. */
  get isBehind(): boolean {
    return this.#stream?.writableNeedDrain === true;
  }

  /** A GET, whose stream carries what belongs to no call, or a DELETE. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET" && this.#stream === undefined) {
      this.#stream = response;
      response.once("close", () => (this.#stream = undefined));
    }
    await this.transport.handleRequest(request, response);
  }

  async post(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    const ids = requestIdsIn(body);
    if (new Set(ids).size < ids.length || ids.some((id) => this.calls.isOpen(id))) {
      const message = "That id is of a call that is still open: every call of a session has its own.";
      return refuse(response, { status: 400, message, code: RPC.invalidRequest });
    }
    const calls = ids.map((id) => this.calls.open(id));
    response.once("close", () => {
      if (response.statusCode !== 200) for (const id of ids) this.calls.cancel(id);
      if (!response.writableFinished) for (const call of calls) call.abandon();
    });
    void Promise.all(calls.map(({ over }) => over)).then(() => this.#endStreamOf(ids));
    await this.transport.handleRequest(request, response, body);
  }

  async close(): Promise<void> {
    await this.transport.close();
  }

  /** What was cancelled has no answer: its stream ends without. The transport forgets a request with its answer only. */
  #endStreamOf(ids: readonly RequestId[]): void {
    for (const id of ids) {
      this.transport.closeSSEStream(id);
      const error = { code: RPC.server, message: "Cancelled." };
      this.transport.send({ jsonrpc: "2.0", id, error }).catch(() => {});
    }
  }
}
