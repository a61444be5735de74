import type Koa from "koa";
import { ERRORS, type ErrorCode } from "protocol/contract/errors.ts";
import { KeyRefusals } from "runtime/metrics/key-refusals.ts";
import type { ServiceMetrics } from "runtime/metrics/service-metrics.ts";
import { labelsOf, principalOfApiKey } from "window/principal.ts";

/** Counts, by API key, the requests with a valid key that were refused; faults of the relay are not the key's. */
export function observeKeys(metrics: ServiceMetrics, app: Koa): void {
  const refusals = new KeyRefusals();
  metrics.counterOf("relay_key_refusals_total", refusals);
  app.on("answered", ({ state }: Koa.Context, code: ErrorCode | null) => {
    if (code === null || state.apiKeyId === undefined || (ERRORS[code].httpStatus ?? 0) >= 500) return;
    refusals.add(labelsOf(principalOfApiKey(state.apiKeyId)));
  });
}
