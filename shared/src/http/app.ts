import cors from "@koa/cors";
import Koa from "koa";
import helmet from "koa-helmet";
import { type ErrorCode, RelayError } from "../contract/errors.ts";
import type { Logger } from "../logging.ts";
import { problemOf, refusalOf } from "./problem.ts";

/** Answer headers that a page of another origin may read. */
const EXPOSED_HEADERS = ["RateLimit", "RateLimit-Policy", "Retry-After", "Idempotent-Replayed"];

/**
 * A Koa app with what every service answers alike: problem documents, no-store, security headers, CORS for reads.
 * The service adds its surfaces with `app.use(mountSurfaces(…))`. The app emits `answered` with the context and the error
 * code, or null, of each answer.
 * @param options.trustedProxyHops how many X-Forwarded-For entries, from the right, are believed. Koa on its own would
 * take the leftmost one, which the client writes.
 */
export function createApp(options: { readonly logger: Logger; readonly trustedProxyHops: number }): Koa {
  const { logger, trustedProxyHops } = options;
  const app = new Koa({ env: "production", proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops });
  app.on("error", (err) => logger.debug({ err }, "answer could not be sent"));
  return app.use(answerRefusals(logger)).use(readsFromAnyOrigin);
}

/**
 * No answer is kept by a cache unless its handler says so, every one has the security headers, and every refusal is a
 * problem document.
 */
function answerRefusals(logger: Logger): Koa.Middleware {
  return async (ctx, next) => {
    for (const [name, value] of HEADERS) ctx.res.setHeader(name, value);
    let code: ErrorCode | null = null;
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) throw new RelayError("not_found");
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== error) logger.error({ err: error, surface: ctx.state.surfaceId }, "request failed");
      const { status, headers, body } = problemOf(refusal);
      ctx.status = status;
      ctx.body = body;
      ctx.set(headers);
      code = refusal.code;
    }
    ctx.app.emit("answered", ctx, code);
  };
}

const helmetHeaders = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
});

/** Helmet sets the same headers whatever the request: it is asked once. */
const HEADERS: readonly (readonly [string, string])[] = [["Cache-Control", "no-store"], ...askHelmet()];

function askHelmet(): [string, string][] {
  const headers = new Map<string, string>();
  const res = { setHeader: headers.set.bind(headers), removeHeader: headers.delete.bind(headers) };
  void helmetHeaders({ req: {}, res } as unknown as Koa.Context, async () => {});
  return [...headers];
}

/**
 * Reads are open to any origin. Writes are not: a POST, or its preflight, gets no CORS header, so no page can use a
 * visitor's network position or make a browser send an API key.
 */
const forReads = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD"],
  allowHeaders: ["Accept", "Content-Type"],
  exposeHeaders: EXPOSED_HEADERS,
  maxAge: 86_400,
  keepHeadersOnError: false,
});

const readsFromAnyOrigin: Koa.Middleware = (ctx, next) => {
  if (isRead(ctx)) return forReads(ctx, next);
  ctx.set("Vary", "Origin");
  return next();
};

function isRead(ctx: Koa.Context): boolean {
  const method = ctx.method === "OPTIONS" ? ctx.get("Access-Control-Request-Method") : ctx.method;
  return method === "GET" || method === "HEAD";
}
