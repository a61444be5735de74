import { createApp } from "@agent-relay/shared/http/app.ts";
import { healthHandler } from "@agent-relay/shared/http/health.ts";
import { readyHandler } from "@agent-relay/shared/http/readiness.ts";
import { mountSurfaces } from "@agent-relay/shared/http/router.ts";
import { countTraffic } from "@agent-relay/shared/http/traffic.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import type { Counters } from "@agent-relay/shared/window/counters.ts";
import type { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import type { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import type { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import type Koa from "koa";
import type { GatewayKey } from "./gateway-key.ts";
import type { Publisher } from "./publisher.ts";
import type { RateLimits } from "./rate-limits.ts";
import { discoveryRoutes } from "./routes/discovery.ts";
import { feedbackRoutes } from "./routes/feedback.ts";
import { pageRoutes } from "./routes/pages.ts";
import { presenceRoutes } from "./routes/presence.ts";
import { selfTestRoutes } from "./routes/self-test.ts";
import { sessionRoutes } from "./routes/sessions.ts";
import { simpleRequestRoutes } from "./routes/simple-requests.ts";
import type { GatewaySettings } from "./settings.ts";

/** What the routes work with. */
export interface GatewayDeps {
  readonly settings: GatewaySettings;
  readonly logger: Logger;
  readonly link: RedisLink;
  readonly window: ProcessWindow;
  readonly counters: Counters;
  readonly keys: KeyStore;
  readonly gatewayKey: GatewayKey;
  readonly publisher: Publisher;
  readonly limits: RateLimits;
  readonly board: PresenceBoard;
}

/** Koa with every surface of the gateway mounted. */
export function createGatewayApp(deps: GatewayDeps): Koa {
  const { settings, logger, counters, window } = deps;
  const handlers = {
    ...simpleRequestRoutes(deps),
    ...presenceRoutes(deps),
    ...sessionRoutes(deps),
    ...feedbackRoutes(deps),
    ...selfTestRoutes(deps),
    ...discoveryRoutes(deps),
    ...pageRoutes(deps),
    health: healthHandler("gateway"),
    ready: readyHandler("gateway", deps),
  };
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  return app.use(mountSurfaces("gateway", handlers, countTraffic(counters, window)));
}
