import type { Logger } from "relay-runtime/logging.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { PodChannel } from "relay-window/channel/pod-channel.ts";
import { PrincipalShares } from "relay-window/limits/shared-rates.ts";
import { HeartbeatWriter } from "relay-window/presence/heartbeat-writer.ts";
import { KnownEpochs, RouteRestorer } from "relay-window/presence/held-routes.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { CongestionMarks, RouteReleaser } from "relay-window/presence/routes.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import { notePromotions } from "relay-window/window/data-loss.ts";
import { ReachLog } from "relay-window/window/observe.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import type { WsConnectorSettings } from "./settings.ts";

export type PodRedis = ReturnType<typeof createPodRedis>;

/**
 * What a pod reads and writes in Redis. All calls share a link; the channel has its own.
 * @param pod the id of the pod.
 */
export function createPodRedis(settings: WsConnectorSettings, pod: string, logger: Logger) {
  const { redisUrl: url, partitions, deployId, gatherMs, offlineAfterMs } = settings;
  const { proofFreshnessMs, agentsPerKey, agentsPerIssuer } = settings;
  const link = redisAt({ url, name: "ws-connector", logger });
  const channel = new PodChannel({ calls: link, pod, partitions });
  const window = new ProcessWindow({ link, partitions, deployId, logger });
  notePromotions(link, window, logger);
  const reachLog = new ReachLog({ link, partitions, logger });
  const epochs = new KnownEpochs(partitions);
  const shared = { link, window, pod, epochs, offlineAfterMs, proofFreshnessMs, agentsPerKey, agentsPerIssuer };
  return {
    pod,
    link,
    channel,
    window,
    epochs,
    acceptor: new Acceptor({ ...shared, gatherMs, logger }),
    heartbeatWriter: new HeartbeatWriter({ ...shared, logger }),
    restorer: new RouteRestorer(shared),
    releaser: new RouteReleaser({ link, window, pod }),
    congestionMarks: new CongestionMarks({ link, window, pod }),
    shares: new PrincipalShares({ link, partitions, pod }),
    presenceStore: new PresenceStore({ link, window, offlineAfterMs }),
    /** @param isStopped asked before each part starts. */
    async start(isStopped: () => boolean): Promise<void> {
      for (const part of [link, channel, reachLog, window]) if (!isStopped()) await part.start();
    },
    async stop(): Promise<void> {
      for (const part of [reachLog, window, channel, link]) await part.stop();
    },
  };
}
