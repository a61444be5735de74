import type Koa from "koa";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import type { ServiceMetrics } from "./service-metrics.ts";

/**
 * Counts HTTP answers by surface and status, and refusals by code, and times them by group. Surface and group are `none` where the path
 * has none.
 */
export function observeAnswers(metrics: ServiceMetrics, app: Koa): void {
  const requests = metrics.counter("relay_http_requests_total");
  const seconds = metrics.histogram("relay_http_request_seconds");
  const refusals = metrics.counter("relay_refusals_total");
  app.on("answered", (ctx: Koa.Context, code: ErrorCode | null, tookMs: number) => {
    requests.add(`${ctx.state.surfaceId ?? "none"} ${ctx.status}`);
    seconds.observe(tookMs / 1000, ctx.state.surface?.group ?? "none");
    if (code !== null) refusals.add(code);
  });
}
