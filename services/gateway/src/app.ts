import type Koa from "koa";
import { createApp } from "relay-runtime/http/app.ts";
import { healthHandler } from "relay-runtime/http/health.ts";
import { mountSurfaces } from "relay-runtime/http/router.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { relayHosts, relayName } from "relay-runtime/relay-hosts.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import { type Counters, countTraffic } from "relay-window/counters/counters.ts";
import type { PresenceStore } from "relay-window/presence/presence.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { readyHandler } from "relay-window/window/readiness.ts";
import { credentialEndpoints } from "./api/credentials.ts";
import type { EnvelopePublisher } from "./api/envelope-publisher.ts";
import { feedbackEndpoints } from "./api/feedback.ts";
import type { GatewayKey } from "./api/gateway-key.ts";
import { presenceEndpoints } from "./api/presence.ts";
import type { RateLimits } from "./api/rate-limits.ts";
import { selfTestEndpoints } from "./api/self-test.ts";
import { sessionEndpoints } from "./api/sessions.ts";
import { simpleRequestEndpoints } from "./api/simple-requests.ts";
import { discoveryEndpoints } from "./discovery/endpoints.ts";
import { packageEndpoints } from "./discovery/package-endpoints.ts";
import type { Packages } from "./discovery/packages.ts";
import { pageEndpoints } from "./pages/endpoints.ts";
import type { GatewaySettings } from "./settings.ts";

/** What the gateway is composed of; each group of endpoints takes the parts that it names. */
export interface GatewayParts {
  readonly settings: GatewaySettings;
  readonly logger: Logger;
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly counters: Counters;
  readonly keys: KeyStore;
  readonly gatewayKey: GatewayKey;
  readonly tracing: Tracing;
  readonly publisher: EnvelopePublisher;
  readonly limits: RateLimits;
  readonly presenceStore: PresenceStore;
  readonly packages: Packages;
}

/** Koa with every surface of the gateway mounted: the API, the site, and the probes. */
export function createGatewayApp(parts: GatewayParts): Koa {
  const { settings, logger, link, window, counters, keys, gatewayKey, publisher, limits, presenceStore, packages } =
    parts;
  const { tracing } = parts;
  const readiness = { link, window, presenceStore, keys };
  const api = {
    ...simpleRequestEndpoints({ keys, limits, publisher, settings, tracing }),
    ...presenceEndpoints({ window, presenceStore, limits }),
    ...sessionEndpoints({ link, limits, window }),
    ...feedbackEndpoints({ link, window, limits, settings }),
    ...credentialEndpoints({ link, keys, limits, window }),
    ...selfTestEndpoints({ keys, counters, limits, hosts: relayHosts(settings), relay: relayName(settings) }),
  };
  const site = {
    ...discoveryEndpoints({ gatewayKey, settings, packages, ...readiness }),
    ...packageEndpoints({ packages, settings }),
    ...pageEndpoints({ settings }),
  };
  const probes = { health: healthHandler("gateway"), ready: readyHandler("gateway", readiness) };
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  return app.use(mountSurfaces("gateway", { ...api, ...site, ...probes }, countTraffic(counters, window)));
}
