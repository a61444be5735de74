import type { TLSSocket } from "node:tls";
import type { Handlers, SurfaceContext } from "@agent-relay/shared/http/router.ts";
import { readGatewayKeys } from "@agent-relay/shared/window/gateway-keys.ts";
import { diagnostics } from "../reports/diagnostics.ts";
import { domainRouting, type ObservedRequest } from "../reports/domain-routing.ts";
import { sessionJourneys } from "../reports/session-journeys.ts";
import type { OpsReportingSettings } from "../settings.ts";
import { readSource, type SourceDeps } from "../source.ts";

interface Deps extends SourceDeps {
  readonly settings: OpsReportingSettings;
}

type Routes = Pick<Handlers<"ops-reporting">, "diagnostics" | "sessionJourneys" | "domainRouting">;

/** What operators look at when something is amiss. */
export function diagnosticRoutes(deps: Deps): Routes {
  const { settings, link } = deps;
  return {
    async diagnostics() {
      const [source, gatewayKeys] = await Promise.all([readSource(deps), readGatewayKeys(link)]);
      return diagnostics(source, gatewayKeys.length, settings);
    },

    sessionJourneys: async () => sessionJourneys(await readSource(deps), settings.baseUrl),

    domainRouting: (ctx) => domainRouting(observe(ctx), settings),
  };
}

/** The header fields themselves: Koa's own reading believes the leftmost entry, which the client writes. */
function observe({ req }: SurfaceContext): ObservedRequest {
  const field = (name: string) => [req.headers[name] ?? ""].flat().join(",");
  return {
    host: field("host"),
    encrypted: (req.socket as TLSSocket).encrypted === true,
    forwardedHost: field("x-forwarded-host"),
    forwardedProto: field("x-forwarded-proto"),
  };
}
