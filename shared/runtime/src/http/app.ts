import cors from "@koa/cors";
import Koa from "koa";
import helmet from "koa-helmet";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import type { Logger } from "../logging.ts";
import { compressReads } from "./compression.ts";
import { problemOf, refusalOf } from "./problem.ts";
import { type Handler, refuseUnanswered } from "./router.ts";

/** Answer headers that a page of another origin may read. */
const EXPOSED_HEADERS = ["RateLimit", "RateLimit-Policy", "Retry-After", "Idempotent-Replayed"];

const OF_A_BODY = ["Content-Encoding", "ETag"];

/**
 * A Koa app with what all services answer alike: problem documents, no-store, security headers, CORS and compression
 * for reads.
 * A service adds its surfaces with `app.use(mountSurfaces(…))`. For each answer the app emits `answered` with the context,
 * the error code, null without an error, and how many ms it took to make.
 * @param options.trustedProxyHops how many X-Forwarded-For entries are trusted, from the right. By default Koa would take
 * the leftmost one, which the client writes.
 */
export function createApp(options: { readonly logger: Logger; readonly trustedProxyHops: number }): Koa {
  const { logger, trustedProxyHops } = options;
  const app = new Koa({ env: "production", proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops });
  app.on("error", (err) => logger.debug({ err }, "answer could not be sent"));
  return app.use(answerRefusals(logger)).use(readsFromAnyOrigin).use(compressReads);
}

/**
 * No answer may be cached unless its handler says so; each has the security headers; each refusal is a problem document.
 */
function answerRefusals(logger: Logger): Koa.Middleware {
  return async (ctx, next) => {
    const cameAt = performance.now();
    for (const [name, value] of HEADERS) ctx.res.setHeader(name, value);
    let code: ErrorCode | null = null;
    try {
      await next();
      refuseUnanswered(ctx);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== error) logger.error({ err: error, surface: ctx.state.surfaceId }, "request failed");
      const { status, headers, body } = problemOf(refusal);
      // Headers that the handler set for its own body are wrong for this one.
      for (const name of OF_A_BODY) ctx.remove(name);
      ctx.status = status;
      ctx.body = body;
      ctx.set(headers);
      code = refusal.code;
    }
    ctx.app.emit("answered", ctx, code, performance.now() - cameAt);
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

/** Helmet sets the same headers for every request, so the app asks it once. */
const HEADERS: readonly (readonly [string, string])[] = [["Cache-Control", "no-store"], ...securityHeaders()];

function securityHeaders(): [string, string][] {
  const headers = new Map<string, string>();
  const res = { setHeader: headers.set.bind(headers), removeHeader: headers.delete.bind(headers) };
  void helmetHeaders({ req: {}, res } as unknown as Koa.Context, async () => {});
  return [...headers];
}

/**
 * Reads are open to any origin. Writes are not: a POST and its preflight get no CORS header, so that a page can neither use
 * the network position of its visitor nor make the browser send an API key.
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

/** Handler of /health: the process answers. Nothing is asked of Redis, so that its loss restarts nobody. */
export function healthHandler(service: ServiceName): Handler<"health"> {
  return () => ({ ok: true, service, status: "healthy" });
}

/**
 * Refuses requests to a websocket path that are not an upgrade: 426, or 405 for a method that could never be one.
 * Source: RFC 9110, section 15.5.22; docs/protocol.md#frames.
 */
export function requireUpgrade(paths: readonly string[]): Koa.Middleware {
  return (ctx, next) => {
    if (!paths.includes(ctx.path)) return next();
    if (ctx.method === "GET" || ctx.method === "HEAD") throw new ServiceError("upgrade_required");
    ctx.set("Allow", "GET");
    throw new ServiceError("method_not_allowed", { detail: "This path supports GET, as a websocket." });
  };
}
