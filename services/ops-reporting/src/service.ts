import type { HttpService } from "relay-runtime/http/http-service.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { observeAnswers, ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { Counters } from "relay-window/counters/counters.ts";
import { readSnapshot } from "relay-window/counters/snapshot.ts";
import { AddressLimits } from "relay-window/limits/rate-limit.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import { observeCounters, observeLinks, observeWindow, ReachLog } from "relay-window/window/observe.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
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
  const link = redisAt({ url: settings.redisUrl, name: "ops-reporting", logger });
  const window = new ProcessWindow({ link, partitions, deployId: null, logger });
  const reachLog = new ReachLog({ link, partitions, logger });
  const counters = new Counters({ link, window });
  // A user that may not read the figures is found out before the link is up; that there is no window yet is no fault.
  link.onUsable(async () => void (await readSnapshot(link, window).catch(() => {})));
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs });
  const metrics = new ServiceMetrics("ops-reporting");
  const reached = metrics.counter("relay_limits_total");
  const limitReached = (limit: LimitName) => reached.add(limit);
  const limits = new AddressLimits({
    link,
    window,
    partitions,
    requestsPerMinute: settings.publicRequestsPerMinute,
    limitReached,
  });
  const app = createOpsReportingApp({
    settings,
    logger,
    link,
    window,
    counters,
    presenceStore,
    limits,
  });
  observeLinks(metrics, link);
  observeCounters(metrics, counters);
  observeWindow(metrics, link, window);
  observeAnswers(metrics, app);
  let stopped = false;
  return {
    handler: app.callback(),
    metrics,
    limitReached,
    async start() {
      await counters.start();
      await link.start();
      if (!stopped) await reachLog.start();
    },
    async stop() {
      stopped = true;
      await reachLog.stop();
      await counters.stop();
      await link.stop();
    },
  };
}
