import Router from "@koa/router";
import Koa from "koa";
import { readJson } from "../http/body.ts";
import type { ConnectionBounds } from "../http/connection-bounds.ts";
import { ROUTER_OPTIONS, refuseUnanswered, routesOf } from "../http/router.ts";
import { HttpServer } from "../http/server.ts";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import { ADMIN_CONNECTIONS } from "../open-files.ts";
import type { AdminKey } from "./key.ts";
import { AdminError, adminProblemOf } from "./refusal.ts";
import type { AdminRoute } from "./route.ts";

/** As many as a stranger has to open at once before the operator's is not accepted: each is answered and closed within a moment. */
const BOUNDS: ConnectionBounds = { plain: ADMIN_CONNECTIONS, plainPerAddress: 0, websockets: 0, idleMs: 10_000 };
const HINT = "docs/operations.md#admin has every path of this listener.";

/**
 * What the operator alone may ask, on a port of its own, which no edge exposes. Without the key every request has the same
 * answer, whatever it asks for. No CORS header: no page reads it. Source: docs/operations.md#admin.
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
    // At once, and each on a connection of its own: who is kept waiting, or may go on, takes the place of who has the key.
    ctx.set("Connection", "close");
    throw new AdminError("unauthorized");
  }
}

async function inputOf(ctx: Koa.Context, { method }: AdminRoute): Promise<unknown> {
  return method === "GET" ? { ...ctx.query } : (await readJson(ctx)).value;
}
