import type { IncomingMessage, ServerResponse } from "node:http";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";
import { BodyError, discardBody, MAX_REFUSED_BYTES, readBody } from "./body.ts";
import { refuse } from "./refuse.ts";
import { HttpSession } from "./session.ts";

const MAX_SESSIONS = 16;

/** Serves the tools to the client of the session. */
type Serve = (session: HttpSession) => Promise<unknown>;

/**
 * The sessions of MCP's clients. One more than MAX_SESSIONS ends the one whose last request is longest ago, but none that has
 * an open call.
 */
export class HttpSessions {
  readonly #serve: Serve;
  /** In the order of their last requests. */
  readonly #sessions = new Map<string, HttpSession>();

  constructor(serve: Serve) {
    this.#serve = serve;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers["mcp-session-id"];
    const session = this.#sessions.get(String(id));
    if (session !== undefined) this.#use(String(id), session);
    else if (id !== undefined)
      return refuse(response, { status: 404, message: "No such session: initialize another." });
    if (session !== undefined && request.method !== "POST") return await session.handle(request, response);
    try {
      const body = request.method === "POST" ? await readBody(request) : undefined;
      await (session === undefined ? this.#begin(request, response, body) : session.post(request, response, body));
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      discardBody(request, MAX_REFUSED_BYTES);
      const { status, code, message } = error;
      refuse(response, { status, code, message });
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #begin(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    if (![body].flat().some(isInitializeRequest)) {
      return refuse(response, {
        status: 400,
        message: "Send initialize first, then the Mcp-Session-Id of its answer.",
      });
    }
    if (!this.#hasRoom()) return refuse(response, { status: 503, message: "Every session has an open call: end one." });
    const session = new HttpSession((id) => this.#use(id, session));
    session.transport.onclose = () => this.#sessions.delete(session.transport.sessionId ?? "");
    await this.#serve(session);
    await session.post(request, response, body);
    if (session.transport.sessionId === undefined) await session.close();
  }

  /** Ends sessions where they are as many as may be. */
  #hasRoom(): boolean {
    while (this.#sessions.size >= MAX_SESSIONS) {
      const [id, idle] = [...this.#sessions].find(([, { calls }]) => !calls.areOpen) ?? [];
      if (id === undefined) return false;
      this.#sessions.delete(id);
      void idle?.close();
    }
    return true;
  }

  #use(id: string, session: HttpSession): void {
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
  }
}
