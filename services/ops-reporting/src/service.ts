import type { HttpService } from "@agent-relay/shared/http/serving.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import { observeAnswers, observeLinks } from "@agent-relay/shared/metrics/observe.ts";
import { ServiceMetrics } from "@agent-relay/shared/metrics/service-metrics.ts";
import { Counters } from "@agent-relay/shared/window/counters.ts";
import { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { createOpsReportingApp } from "./app.ts";
import type { OpsReportingSettings } from "./settings.ts";

/**
 * Reports about the process window: reads, but for the count of its own views. It opens no window. Stop the server that
 * feeds `handler` first: `stop` then writes the counters and leaves Redis.
 */
export function createOpsReporting(
  settings: OpsReportingSettings,
  { logger }: { readonly logger: Logger },
): HttpService {
  const { partitions, offlineAfterMs } = settings;
  const link = new RedisLink({ url: settings.redisUrl, name: "ops-reporting", logger });
  const window = new ProcessWindow({ link, partitions, deployId: null, logger });
  const counters = new Counters({ link, window });
  const board = new PresenceBoard({ link, partitions, offlineAfterMs });
  const app = createOpsReportingApp({ settings, logger, link, window, counters, board });
  const metrics = new ServiceMetrics("ops-reporting");
  observeLinks(metrics, [link]);
  observeAnswers(metrics, app);
  return {
    handler: app.callback(),
    metrics: metrics.registry,
    async start() {
      await counters.start();
      await link.start();
    },
    async stop() {
      await counters.stop();
      await link.stop();
    },
  };
}
