import type Koa from "koa";
import { ServiceError } from "relay-protocol/contract/refusals.ts";

/**
 * Answers what comes to a websocket path and is no upgrade: 426, and 405 for what could never be one.
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
