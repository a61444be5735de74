import type { TLSSocket } from "node:tls";
import type { Handlers, SurfaceContext } from "relay-runtime/http/router.ts";
import { domainRouting, type ObservedRequest } from "../reports/domain-routing.ts";
import type { OpsReportingSettings } from "../settings.ts";

/** The report that is computed from its own request, and reads nothing of the window. */
export function domainRoutingEndpoint(
  settings: OpsReportingSettings,
): Pick<Handlers<"ops-reporting">, "domainRouting"> {
  return { domainRouting: (ctx) => domainRouting(observe(ctx), settings) };
}

/** Reads the header fields themselves: Koa takes the leftmost entry, which the client writes. */
function observe({ req }: SurfaceContext): ObservedRequest {
  const field = (name: string) => [req.headers[name] ?? ""].flat().join(",");
  return {
    host: field("host"),
    encrypted: (req.socket as TLSSocket).encrypted === true,
    forwardedHost: field("x-forwarded-host"),
    forwardedProto: field("x-forwarded-proto"),
  };
}
