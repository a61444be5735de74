import { createApp } from "@agent-relay/shared/http/app.ts";
import { healthHandler } from "@agent-relay/shared/http/health.ts";
import { readyHandler } from "@agent-relay/shared/http/readiness.ts";
import { mountSurfaces } from "@agent-relay/shared/http/router.ts";
import { countTraffic } from "@agent-relay/shared/http/traffic.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import type { Counters } from "@agent-relay/shared/window/counters.ts";
import type { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import type { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import type Koa from "koa";
import { diagnosticRoutes } from "./routes/diagnostics.ts";
import { guideRoutes } from "./routes/guides.ts";
import { reportRoutes } from "./routes/reports.ts";
import type { OpsReportingSettings } from "./settings.ts";

/** What the routes work with. */
export interface OpsReportingDeps {
  readonly settings: OpsReportingSettings;
  readonly logger: Logger;
  readonly link: RedisLink;
  readonly window: ProcessWindow;
  readonly counters: Counters;
  readonly board: PresenceBoard;
}

/** Koa with every surface of ops-reporting mounted. */
export function createOpsReportingApp(deps: OpsReportingDeps): Koa {
  const { settings, logger, counters, window } = deps;
  const handlers = {
    ...reportRoutes(deps),
    ...diagnosticRoutes(deps),
    ...guideRoutes(deps),
    health: healthHandler("ops-reporting"),
    ready: readyHandler("ops-reporting", deps),
  };
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  return app.use(mountSurfaces("ops-reporting", handlers, countTraffic(counters, window)));
}
