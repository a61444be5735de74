import type { RequestListener } from "node:http";
import type { Registry } from "prom-client";
import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import type { LimitName } from "../metrics/catalogue.ts";
import { MetricsServer } from "../metrics/server.ts";
import type { ServiceMetrics } from "../metrics/service-metrics.ts";
import { certificateOf, observeCertificate } from "./certificate.ts";
import { type ConnectionSettings, connectionBounds } from "./connection-bounds.ts";
import { HttpServer, type TakeUpgrade } from "./server.ts";

/** A service that answers HTTP requests; the server that hands them over is not its own. */
export interface HttpService extends Service {
  /** May be called at any time; answers 503 for whatever needs Redis before `start` and after `stop`. */
  readonly handler: RequestListener;
  readonly metrics: ServiceMetrics;
  /** Counts a limit that its server reached. */
  readonly limitReached: (limit: LimitName) => void;
  /** Takes over websocket upgrades; the service closes these sockets itself. */
  readonly upgrade?: TakeUpgrade;
}

/** What the server of a service is told. */
export interface ServerSettings extends ConnectionSettings {
  readonly host: string;
  readonly port: number;
  readonly metricsPort: number | undefined;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
}

/**
 * Runs a service behind a port of its own. Start: the service, then its server, then the metrics. Stop: websockets, then the
 * server, then the service, so that the counts of the last requests are written; the metrics last.
 * @param settings.metricsPort undefined = no metrics.
 */
export function serveOverHttp(service: HttpService, settings: ServerSettings, logger: Logger): Service {
  const { handler, upgrade, limitReached } = service;
  const { host, port, trustedProxyHops } = settings;
  const metrics = metricsServer([service.metrics.registry], { ...settings, logger });
  const bounds = connectionBounds(settings);
  const certificate = certificateOf(settings, logger);
  observeCertificate(service.metrics, certificate);
  const server = new HttpServer({
    handler,
    ...(upgrade && { upgrade }),
    ...{ host, port, certificate, bounds, trustedProxyHops, limitReached, logger },
  });
  let stopping = false;
  return {
    async start() {
      await service.start();
      if (!stopping) await server.start();
      if (!stopping) await metrics?.start();
    },
    async stop() {
      stopping = true;
      if (upgrade !== undefined) await service.stop();
      await server.stop();
      await service.stop();
      await metrics?.stop();
    },
  };
}

/** The server of the metrics; undefined without a port. */
export function metricsServer(
  services: readonly Registry[],
  options: { readonly host: string; readonly metricsPort: number | undefined; readonly logger: Logger },
): MetricsServer | undefined {
  const { host, metricsPort: port, logger } = options;
  return port === undefined ? undefined : new MetricsServer({ services, host, port, logger });
}
