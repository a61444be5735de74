import type Koa from "koa";
import type { ErrorCode } from "../contract/errors.ts";
import type { Acceptor } from "../window/acceptor.ts";
import type { RedisLink } from "../window/redis-link.ts";
import type { ServiceMetrics } from "./service-metrics.ts";

/** State and latency of the service's links to Redis. */
export function observeLinks(metrics: ServiceMetrics, links: readonly RedisLink[]): void {
  const seconds = metrics.histogram("relay_redis_call_seconds");
  const failures = metrics.counter("relay_redis_failures_total");
  metrics.gauge("relay_redis_up", () => links.map((link) => [link.name, link.up ? 1 : 0]));
  for (const link of links) {
    const timer = seconds.labels({ link: link.name });
    link.onCall((tookMs, failed) => {
      timer.observe(tookMs / 1000);
      if (failed) failures.add(link.name);
    });
  }
}

/** Envelopes by type, delivery statuses, and how many one call to Redis carried. */
export function observeAcceptor(metrics: ServiceMetrics, acceptor: Acceptor): void {
  const sizes = metrics.histogram("relay_acceptance_batch_size");
  const envelopes = metrics.counter("relay_envelopes_total");
  const deliveries = metrics.counter("relay_deliveries_total");
  acceptor.observe({
    called: (size) => sizes.observe(size),
    settled: ({ envelope }, acceptance) => {
      if (!("about" in acceptance)) return;
      envelopes.add(`${typeLabel(envelope.type)} ${acceptance.outcome}`);
      const isNew = acceptance.outcome === "accepted";
      if (acceptance.about === "delivery" && isNew) deliveries.add(acceptance.delivery);
    },
  });
}

/** HTTP answers by surface and status, refusals by code. What no surface answers is `none`. */
export function observeAnswers(metrics: ServiceMetrics, app: Koa): void {
  const requests = metrics.counter("relay_http_requests_total");
  const refusals = metrics.counter("relay_refusals_total");
  app.on("answered", (ctx: Koa.Context, code: ErrorCode | null) => {
    requests.add(`${ctx.state.surfaceId ?? "none"} ${ctx.status}`);
    if (code !== null) refusals.add(code);
  });
}

/** The word in `message.<word>` is the sender's to choose: a label for each would let agents fill the memory. */
function typeLabel(type: string): string {
  return type.startsWith("message.") ? "message" : type;
}
