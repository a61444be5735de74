import { relayHosts, relayName } from "relay-runtime/addresses.ts";
import { AuditLog } from "relay-runtime/audit-log.ts";
import { createApp, healthHandler } from "relay-runtime/http/app.ts";
import type { HttpService } from "relay-runtime/http/http-service.ts";
import { mountSurfaces } from "relay-runtime/http/router.ts";
import { KeyStore } from "relay-runtime/key-store.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { observeAnswers, ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { Tracing } from "relay-runtime/tracing/tracing.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { Counters, countTraffic } from "relay-window/counters/counters.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import { notePromotions } from "relay-window/window/data-loss.ts";
import {
  auditWindowsAndKeys,
  observeAcceptance,
  observeCounters,
  observeLinks,
  observeWindow,
  ReachLog,
} from "relay-window/window/observe.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { readyHandler } from "relay-window/window/readiness.ts";
import { observeKeys, RateLimits } from "./api/authentication.ts";
import { credentialEndpoints } from "./api/credentials.ts";
import { feedbackEndpoints } from "./api/feedback.ts";
import { GatewayKey } from "./api/gateway-key.ts";
import { presenceEndpoints } from "./api/presence.ts";
import { EnvelopePublisher } from "./api/publisher.ts";
import { selfTestEndpoints } from "./api/self-test.ts";
import { sessionEndpoints } from "./api/sessions.ts";
import { simpleRequestEndpoints } from "./api/simple-requests.ts";
import { discoveryEndpoints } from "./discovery/endpoints.ts";
import { packageEndpoints, readPackages } from "./discovery/packages.ts";
import { pageEndpoints } from "./pages/pages.ts";
import { type GatewaySettings, warnWithoutContact } from "./settings.ts";

/**
 * The gateway: the HTTP API, the documents that describe the relay, and the pages. Stop the server that calls `handler`
 * before this: `stop` then writes the last counters and disconnects from Redis.
 * @throws {SettingsError} when RELAY_PACKAGES_DIR does not hold what its index says.
 */
export function createGateway(settings: GatewaySettings, { logger }: { readonly logger: Logger }): HttpService {
  const { partitions, gatherMs, offlineAfterMs, proofFreshnessMs, deployId } = settings;
  const link = redisAt({ url: settings.redisUrl, name: "gateway", logger });
  const window = new ProcessWindow({ link, partitions, deployId, logger });
  notePromotions(link, window, logger);
  const reachLog = new ReachLog({ link, partitions, logger });
  const counters = new Counters({ link, window });
  const keys = new KeyStore({ path: settings.keysFile, logger });
  const audit = new AuditLog({ file: settings.auditFile, service: "gateway", logger });
  auditWindowsAndKeys(audit, window, keys);
  const tracing = new Tracing({ settings, service: "gateway", logger });
  const gatewayKey = new GatewayKey({ file: settings.gatewayKeyFile, link, window, keys, logger });
  const acceptor = new Acceptor({ link, window, gatherMs, offlineAfterMs, proofFreshnessMs, logger });
  const metrics = new ServiceMetrics("gateway");
  const reached = metrics.counter("relay_limits_total");
  const limitReached = (limit: LimitName) => reached.add(limit);
  const limits = new RateLimits({
    link,
    window,
    partitions,
    requestsPerMinute: settings.publicRequestsPerMinute,
    limitReached,
  });
  const publisher = new EnvelopePublisher({ gatewayKey, acceptor, contact: settings.contact });
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs });
  const packages = readPackages(settings.packagesDir);
  const readiness = { link, window, presenceStore, keys };
  const surfaces = {
    ...simpleRequestEndpoints({ keys, limits, publisher, settings, tracing }),
    ...presenceEndpoints({ window, presenceStore, limits }),
    ...sessionEndpoints({ link, limits, window }),
    ...feedbackEndpoints({ link, window, limits, settings }),
    ...credentialEndpoints({ link, keys, limits, window }),
    ...selfTestEndpoints({ keys, counters, limits, hosts: relayHosts(settings), relay: relayName(settings) }),
    ...discoveryEndpoints({ gatewayKey, settings, packages, ...readiness }),
    ...packageEndpoints({ packages, settings }),
    ...pageEndpoints({ settings }),
    health: healthHandler("gateway"),
    ready: readyHandler("gateway", readiness),
  };
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  app.use(mountSurfaces("gateway", surfaces, countTraffic(counters, window)));
  observeLinks(metrics, link);
  observeCounters(metrics, counters);
  observeWindow(metrics, link, window);
  observeAcceptance(metrics, acceptor);
  observeAnswers(metrics, app);
  observeKeys(metrics, keys, audit, app);

  let stopped = false;
  return {
    handler: app.callback(),
    metrics,
    limitReached,
    async start() {
      await Promise.all([keys.start(), audit.start(), tracing.start()]);
      await gatewayKey.start();
      if (stopped) return;
      warnWithoutContact(settings, logger);
      await counters.start();
      await link.start();
      if (stopped) return;
      await reachLog.start();
      await window.start();
    },
    async stop() {
      stopped = true;
      keys.stop();
      gatewayKey.stop();
      await reachLog.stop();
      await window.stop();
      await counters.stop();
      await link.stop();
      await audit.stop();
      await tracing.stop();
    },
  };
}
