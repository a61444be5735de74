import Router from "@koa/router";
import Koa from "koa";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { z } from "zod";
import { ADMIN_CONNECTIONS, type ConnectionBounds } from "../http/connections.ts";
import { readJson, validate } from "../http/input.ts";
import { problemOf } from "../http/problem.ts";
import { ROUTER_OPTIONS, refuseUnanswered, routesOf } from "../http/router.ts";
import { HttpServer } from "../http/server.ts";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import type { AdminKey } from "./admin-key.ts";

/** As many as a stranger has to open at once before the operator's is not accepted: each is answered and closed within a moment. */
const BOUNDS: ConnectionBounds = { plain: ADMIN_CONNECTIONS, plainPerAddress: 0, websockets: 0, idleMs: 10_000 };
const HINT = "docs/operations.md#admin has every path of this listener.";

/**
 * The operator's listener, on a port of its own that no edge exposes. Every request without the key gets the same
 * answer, whatever its path. No CORS header: no page reads it. Source: docs/operations.md#admin.
 */
export class AdminServer implements Service {
  readonly #key: AdminKey;
  readonly #logger: Logger;
  readonly #refused: () => void;
  readonly #server: HttpServer;
  #isStopped = false;

  /** @param options.refused is called with each request without the key. */
  constructor(options: {
    readonly host: string;
    readonly port: number;
    readonly key: AdminKey;
    readonly routes: readonly AdminRoute[];
    readonly refused: () => void;
    readonly logger: Logger;
  }) {
    const { host, port } = options;
    // Which of the process's ports a line is about.
    const logger = options.logger.child({ listener: "admin" });
    this.#key = options.key;
    this.#logger = logger;
    this.#refused = options.refused;
    const app = new Koa({ env: "production" });
    app.on("error", (err) => logger.debug({ err }, "admin answer could not be sent"));
    const router = new Router(ROUTER_OPTIONS);
    for (const route of options.routes) {
      router.register(route.path, [route.method], async (ctx) => {
        ctx.body = await route.answer(await inputOf(ctx, route));
      });
    }
    app.use((ctx, next) => this.#answer(ctx, next)).use(routesOf(router));
    this.#server = new HttpServer({ handler: app.callback(), host, port, bounds: BOUNDS, logger });
  }

  /** @throws SettingsError of the key file. */
  async start(): Promise<void> {
    await this.#key.start();
    if (!this.#isStopped) await this.#server.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#key.stop();
    await this.#server.stop();
  }

  async #answer(ctx: Koa.Context, next: Koa.Next): Promise<void> {
    try {
      this.#checkKey(ctx);
      await next();
      refuseUnanswered(ctx, HINT);
    } catch (error) {
      const { status, headers, body } = adminProblemOf(error);
      if (status === 500) this.#logger.error({ err: error }, "admin request failed");
      ctx.status = status;
      ctx.body = body;
      ctx.set(headers);
    }
    ctx.set({ "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" });
  }

  #checkKey(ctx: Koa.Context): void {
    if (this.#key.isIn(ctx.get("Authorization"))) return;
    this.#refused();
    // Refused at once, and the connection is closed: a stranger who may wait or go on takes the place of the operator.
    ctx.set("Connection", "close");
    throw new AdminError("unauthorized");
  }
}

async function inputOf(ctx: Koa.Context, { method }: AdminRoute): Promise<unknown> {
  return method === "GET" ? { ...ctx.query } : (await readJson(ctx)).value;
}

/** One thing that the admin listener answers. */
export interface AdminRoute {
  readonly method: "GET" | "POST";
  readonly path: string;
  /**
   * @param input the query of a GET, the JSON body of a POST; not checked.
   * @returns the answer, to be sent as JSON. @throws ServiceError, AdminError.
   */
  readonly answer: (input: unknown) => Promise<object>;
}

/** A route whose input fits a schema. */
export function adminRoute<Schema extends z.ZodType>(
  method: AdminRoute["method"],
  path: string,
  schema: Schema,
  answer: (input: z.output<Schema>) => object | Promise<object>,
): AdminRoute {
  return { method, path, answer: async (input) => await answer(validate(schema, input)) };
}

/** Refusals of the admin listener alone. No client of the relay ever sees these codes. */
const ADMIN_ERRORS = {
  unauthorized: {
    status: 401,
    title: "The request has no admin key, or another one.",
    hint: "Send Authorization: Bearer, and the line that RELAY_ADMIN_KEY_FILE of this pod holds.",
  },
  not_in_force: {
    status: 404,
    title: "No key or issuer of this id is in force.",
    hint: "npm run keys -- list shows signing keys and issuers of the keys file; an API key has no connections.",
  },
  not_connected: {
    status: 404,
    title: "No pod has a connection of this agent.",
    hint: "Nothing is to be done: it is not online, or has just gone.",
  },
} as const;
type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/** A refusal of the admin listener. */
export class AdminError extends Error {
  readonly code: AdminErrorCode;

  constructor(code: AdminErrorCode) {
    super(ADMIN_ERRORS[code].title);
    this.name = "AdminError";
    this.code = code;
  }
}

/** A refusal as HTTP sends it. Source: RFC 9457; docs/operations.md#admin. */
interface AdminProblem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

/** The problem document of anything thrown. It says nothing about an unexpected error. */
function adminProblemOf(error: unknown): AdminProblem {
  if (!(error instanceof AdminError)) {
    return problemOf(error instanceof ServiceError ? error : new ServiceError("internal_error"));
  }
  const { code } = error;
  const { status, title, hint } = ADMIN_ERRORS[code];
  return {
    status,
    // RFC 6750, section 3.
    headers: {
      "Content-Type": "application/problem+json",
      ...(status === 401 && { "WWW-Authenticate": 'Bearer realm="agent-relay admin"' }),
    },
    body: {
      type: `urn:agent-relay:problem:${code}`,
      title,
      status,
      detail: title,
      ok: false,
      code,
      hint,
      retry: "fix",
    },
  };
}
