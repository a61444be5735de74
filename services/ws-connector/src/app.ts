import type { RequestListener } from "node:http";
import { createApp } from "@agent-relay/shared/http/app.ts";
import { healthHandler } from "@agent-relay/shared/http/health.ts";
import { mountSurfaces } from "@agent-relay/shared/http/router.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import type { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import type { WsConnectorSettings } from "./settings.ts";

/** The probes of a pod. Ready means: a message through the pod's own channel came back. */
export function createWsConnectorApp(options: {
  readonly presence: PresenceBoard;
  readonly settings: WsConnectorSettings;
  readonly logger: Logger;
  readonly connectionCount: () => number;
  readonly isReady: () => boolean;
}): RequestListener {
  const { presence, settings, logger } = options;
  const app = createApp({ logger, trustedProxyHops: settings.trustedProxyHops });
  app.use(
    mountSurfaces("ws-connector", {
      health: healthHandler("ws-connector"),
      ready: async (ctx) => {
        const counts = await presence.count().catch(() => null);
        const ready = counts !== null && options.isReady();
        if (!ready) ctx.status = 503;
        return {
          ok: ready,
          service: "ws-connector",
          ready,
          online_agents: counts?.ok ?? null,
          stale_agents: counts === null ? null : counts.stale + counts.critical_stale,
          connections: options.connectionCount(),
          next_action: ready ? "Connect to /ws and send agent.register." : "Wait: this pod takes no connections now.",
        };
      },
    }),
  );
  return app.callback();
}
