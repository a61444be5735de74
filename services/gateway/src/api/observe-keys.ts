import type Koa from "koa";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import { KeyRefusals } from "relay-runtime/metrics/key-refusals.ts";
import type { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { labelsOf, principalNameOf, principalOfApiKey } from "relay-window/limits/principals.ts";

/**
 * Counts, by API key, the requests with a valid key that were refused, and has them audited; faults of the relay are not the key's. Counts
 * what the audit log lost.
 */
export function observeKeys(metrics: ServiceMetrics, keys: KeyStore, audit: AuditLog, app: Koa): void {
  metrics.gauge("relay_keys_file_valid", () => [["", keys.isBehind ? 0 : 1]]);
  const refusals = new KeyRefusals();
  metrics.counterOf("relay_key_refusals_total", () => refusals);
  metrics.counterOf("relay_audit_lines_lost_total", () => [["", audit.linesLost]]);
  app.on("answered", ({ state }: Koa.Context, code: ErrorCode | null) => {
    if (code === null || state.apiKeyId === undefined || (ERRORS[code].httpStatus ?? 0) >= 500) return;
    const principal = principalOfApiKey(state.apiKeyId);
    refusals.add(labelsOf(principal));
    audit.refused(principalNameOf(principal), code);
  });
}
