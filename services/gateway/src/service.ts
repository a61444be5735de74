import type { HttpService } from "@agent-relay/shared/http/serving.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import { observeAcceptor, observeAnswers, observeLinks } from "@agent-relay/shared/metrics/observe.ts";
import { ServiceMetrics } from "@agent-relay/shared/metrics/service-metrics.ts";
import { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import { Acceptor } from "@agent-relay/shared/window/acceptor.ts";
import { Counters } from "@agent-relay/shared/window/counters.ts";
import { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { createGatewayApp } from "./app.ts";
import { GatewayKey } from "./gateway-key.ts";
import { Publisher } from "./publisher.ts";
import { RateLimits } from "./rate-limits.ts";
import type { GatewaySettings } from "./settings.ts";

/**
 * The gateway: simple sends and session requests, presence, feedback, self-test and discovery. Stop the server that
 * feeds `handler` first: `stop` then writes the counters and leaves Redis.
 */
export function createGateway(settings: GatewaySettings, { logger }: { readonly logger: Logger }): HttpService {
  const { partitions, offlineAfterMs, deployId } = settings;
  const link = new RedisLink({ url: settings.redisUrl, name: "gateway", logger });
  const window = new ProcessWindow({ link, partitions, deployId, logger });
  const counters = new Counters({ link, window });
  const keys = new KeyStore({ path: settings.keysFile, logger });
  const gatewayKey = new GatewayKey({ file: settings.gatewayKeyFile, link, window });
  const acceptor = new Acceptor({ link, window, partitions, pod: "gateway", offlineAfterMs, logger });
  const metrics = new ServiceMetrics("gateway");
  const struck = metrics.counter("relay_limits_total");
  const app = createGatewayApp({
    settings,
    logger,
    link,
    window,
    counters,
    keys,
    gatewayKey,
    publisher: new Publisher({ gatewayKey, acceptor }),
    limits: new RateLimits({
      link,
      window,
      publicRequestsPerMinute: settings.publicRequestsPerMinute,
      struck: (limit) => struck.add(limit),
    }),
    board: new PresenceBoard({ link, partitions, offlineAfterMs }),
  });
  observeLinks(metrics, [link]);
  observeAcceptor(metrics, acceptor);
  observeAnswers(metrics, app);

  let stopped = false;
  return {
    handler: app.callback(),
    metrics: metrics.registry,
    async start() {
      await Promise.all([keys.start(), gatewayKey.load()]);
      if (stopped) return;
      gatewayKey.start();
      await counters.start();
      await link.start();
    },
    async stop() {
      stopped = true;
      keys.stop();
      gatewayKey.stop();
      await counters.stop();
      await link.stop();
    },
  };
}
