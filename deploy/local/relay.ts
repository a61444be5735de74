import type { RequestListener } from "node:http";
import { createGateway } from "@agent-relay/gateway/service.ts";
import { readGatewaySettings } from "@agent-relay/gateway/settings.ts";
import { createOpsReporting } from "@agent-relay/ops-reporting/service.ts";
import { readOpsReportingSettings } from "@agent-relay/ops-reporting/settings.ts";
import { serviceOf, WEBSOCKET_PATH } from "@agent-relay/shared/contract/surfaces.ts";
import { HttpServer } from "@agent-relay/shared/http/server.ts";
import { metricsServer } from "@agent-relay/shared/http/serving.ts";
import type { Runnable } from "@agent-relay/shared/lifecycle.ts";
import { createLogger } from "@agent-relay/shared/logging.ts";
import type { Environment } from "@agent-relay/shared/settings.ts";
import { createWsConnector } from "@agent-relay/ws-connector/service.ts";
import { readWsConnectorSettings } from "@agent-relay/ws-connector/settings.ts";

/** What is known once everything is served. */
export interface Served {
  readonly baseUrl: string;
  readonly websocketUrl: string;
}

/**
 * The three services in one process on one port: what compose and Kubernetes run apart, behind one address.
 * @throws SettingsError.
 */
export function createRelay(env: Environment, served: (served: Served) => void): Runnable {
  const settings = {
    gateway: readGatewaySettings(env),
    wsConnector: readWsConnectorSettings(env),
    opsReporting: readOpsReportingSettings(env),
  };
  const { host, port, metricsPort, logLevel: level, baseUrl, wsUrl } = settings.gateway;
  const logger = createLogger({ service: "agent-relay", level });
  const connector = createWsConnector(settings.wsConnector, { logger });
  const gateway = createGateway(settings.gateway, { logger });
  const opsReporting = createOpsReporting(settings.opsReporting, { logger });
  const handlers: Record<string, RequestListener> = {
    gateway: gateway.handler,
    "ops-reporting": opsReporting.handler,
  };
  const server = new HttpServer({
    handler: (req, res) => {
      const path = (req.url ?? "").split("?", 1)[0] ?? "";
      handlers[serviceOf(req.method ?? "GET", path)]?.(req, res);
    },
    upgrade: connector.upgrade,
    host,
    port,
    logger,
  });
  const registries = [gateway, connector, opsReporting].map(({ metrics }) => metrics);
  const metrics = metricsServer(registries, { host, metricsPort, logger });
  return {
    logger,
    service: {
      start: async () => {
        await Promise.all([connector.start(), gateway.start()]);
        await opsReporting.start();
        await server.start();
        await metrics?.start();
        served({ baseUrl, websocketUrl: `${wsUrl}${WEBSOCKET_PATH}` });
      },
      stop: async () => {
        await connector.stop();
        await server.stop();
        await Promise.all([gateway.stop(), opsReporting.stop()]);
        await metrics?.stop();
      },
    },
  };
}
