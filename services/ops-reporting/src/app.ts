import type Koa from "koa";
import { createApp } from "relay-runtime/http/app.ts";
import { healthHandler } from "relay-runtime/http/health.ts";
import { mountSurfaces } from "relay-runtime/http/router.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { type Counters, countTraffic } from "relay-window/counters/counters.ts";
import type { AddressLimits } from "relay-window/limits/rate-limit.ts";
import type { PresenceStore } from "relay-window/presence/presence.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { readyHandler } from "relay-window/window/readiness.ts";
import { domainRoutingEndpoint } from "./endpoints/domain-routing.ts";
import { guideEndpoints } from "./endpoints/guides.ts";
import { reportEndpoints } from "./endpoints/reports.ts";
import type { OpsReportingSettings } from "./settings.ts";
import { WindowReader } from "./window-reader.ts";

/** What the endpoints work with. */
export interface OpsReportingDeps {
  readonly settings: OpsReportingSettings;
  readonly logger: Logger;
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly counters: Counters;
  readonly presenceStore: PresenceStore;
  readonly limits: AddressLimits;
}

/** Koa with every surface of ops-reporting mounted. */
export function createOpsReportingApp(deps: OpsReportingDeps): Koa {
  const { settings, logger, link, presenceStore, limits, counters, window } = deps;
  const reader = new WindowReader({ link, window, presenceStore, ...settings });
  const handlers = {
    ...reportEndpoints(reader, settings),
    ...guideEndpoints(reader, limits, settings),
    ...domainRoutingEndpoint(settings),
    health: healthHandler("ops-reporting"),
    ready: readyHandler("ops-reporting", deps),
  };
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  return app.use(mountSurfaces("ops-reporting", handlers, countTraffic(counters, window)));
}
